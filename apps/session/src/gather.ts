import { fairLine } from '@iris/runtime';

/** Whose questions they are, for what goes first when not all of them go. */
export interface Asker {
  readonly key: string;
  readonly weight: number;
  readonly cost: number;
}
const anyone: Asker = { key: '', weight: 1, cost: 1 };

/**
 * Group commit: what many ask for in one tick goes as one call, and while calls are under way the next one grows. What does not fit goes by
 * turns of those who ask, by weight. Answers come back in the order of the questions; a call that fails fails for everyone in it.
 */
export function gather<Q, A>(options: {
  call: (questions: readonly Q[]) => Promise<readonly A[]>;
  /** When the first question of a batch has come: the time to gather more. */
  soon: (run: () => void) => void;
  /** Calls under way at once. */
  calls: number;
  /** Questions in one call. */
  most: number;
  /** Default: all are one. */
  asker?: (questions: readonly Q[]) => Asker;
}): (questions: readonly Q[]) => Promise<A[]> {
  interface Asked {
    readonly questions: readonly Q[];
    resolve(answers: A[]): void;
    reject(error: unknown): void;
  }
  const waiting = fairLine<string, Asked>();
  /** Next, but did not fit into the last call. */
  let left: Asked | undefined;
  const some = () => left !== undefined || waiting.size > 0;
  let underWay = 0;
  let woken = false;

  const wake = () => {
    if (woken || !some() || underWay >= options.calls) return;
    woken = true;
    options.soon(() => {
      woken = false;
      while (some() && underWay < options.calls) void start();
    });
  };
  const start = async () => {
    let size = 0;
    const batch: Asked[] = [];
    for (;;) {
      left ??= waiting.next();
      if (left === undefined || (batch.length > 0 && size + left.questions.length > options.most)) break;
      size += left.questions.length;
      batch.push(left);
      left = undefined;
    }
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
      const { key, weight, cost } = options.asker?.(questions) ?? anyone;
      waiting.push(key, { weight, cost }, { questions, resolve, reject });
      wake();
    });
}
