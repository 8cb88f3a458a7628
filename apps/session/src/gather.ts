/**
 * Group commit: what many ask for in one tick goes as one call, and while calls are under way the next one grows. Answers come
 * back in the order of the questions; a call that fails fails for everyone in it.
 */
export function gather<Q, A>(options: {
  call: (questions: readonly Q[]) => Promise<readonly A[]>;
  /** When the first question of a batch has come: the time to gather more. */
  soon: (run: () => void) => void;
  /** Calls under way at once. */
  calls: number;
  /** Questions in one call. */
  most: number;
}): (questions: readonly Q[]) => Promise<A[]> {
  interface Asked {
    readonly questions: readonly Q[];
    resolve(answers: A[]): void;
    reject(error: unknown): void;
  }
  let waiting: Asked[] = [];
  let underWay = 0;
  let woken = false;

  const wake = () => {
    if (woken || waiting.length === 0 || underWay >= options.calls) return;
    woken = true;
    options.soon(() => {
      woken = false;
      while (waiting.length > 0 && underWay < options.calls) void start();
    });
  };
  const start = async () => {
    let size = 0;
    let count = 0;
    while (count < waiting.length && (count === 0 || size + waiting[count]!.questions.length <= options.most))
      size += waiting[count++]!.questions.length;
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    underWay++;
    try {
      const answers = await options.call(batch.flatMap(({ questions }) => questions));
      let at = 0;
      for (const { questions, resolve } of batch) {
        resolve(answers.slice(at, at + questions.length));
        at += questions.length;
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      underWay--;
      wake();
    }
  };
  return (questions) =>
    new Promise((resolve, reject) => {
      waiting.push({ questions, resolve, reject });
      wake();
    });
}
