/** Calls that gather while one is under way go together as the next: the slower the server, the larger the batches. */
export function batched<T, R>(call: (items: readonly T[]) => Promise<readonly R[]>, most: number): (item: T) => Promise<R> {
  let waiting: { item: T; resolve: (value: R) => void; reject: (error: unknown) => void }[] = [];
  let running = false;
  const run = async () => {
    running = true;
    // What is asked in the same turn goes along.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting.slice(0, most);
      waiting = waiting.slice(most);
      try {
        const answers = await call(batch.map(({ item }) => item));
        for (const [i, { resolve }] of batch.entries()) resolve(answers[i]!);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    running = false;
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!running) void run();
    });
}
