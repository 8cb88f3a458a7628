import { RequestError } from '@iris/protocol';
import type { Clock, Random } from '@iris/runtime';

/** A store did not do it in time. What was asked may have happened or not; asking again is safe. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
}

export interface Patience {
  /**
   * Run it until it works. A {@link RequestError} is an answer and thrown on. Anything else is tried again with growing pauses, until
   * the deadline; or, when the stores say that they work and it still fails, only a few times: then it is a fault of ours.
   * @throws Unavailable past the deadline, or when given up
   */
  persist<T>(run: (attempt: number) => Promise<T>, options: { deadline?: number | undefined; what: string }): Promise<T>;
  /** From now on nothing is tried again. */
  giveUp(): void;
  pause(ms: number): Promise<void>;
}

const pauseMax_ms = 1_000;
/** Failures while everything says it works. */
const faultsMax = 3;

export function createPatience(deps: {
  clock: Clock;
  random: Random;
  retry_ms: number;
  /** Whether the stores work, so that the failure must be ours. */
  works: (error: unknown) => Promise<boolean>;
  failed: (what: string, error: unknown) => void;
}): Patience {
  const { clock } = deps;
  let over = false;
  const sleepers = new Set<() => void>();

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        sleepers.delete(wake);
        timer.cancel();
        resolve();
      };
      const timer = clock.after(ms, wake);
      sleepers.add(wake);
    });
  return {
    async persist(run, { deadline, what }) {
      let faults = 0;
      for (let attempt = 0; ; attempt++) {
        if (deadline !== undefined && clock.now() >= deadline) throw new Unavailable(`${what}: past its deadline`);
        try {
          return await run(attempt);
        } catch (error) {
          if (error instanceof RequestError || error instanceof Unavailable) throw error;
          deps.failed(what, error);
          if (over) throw new Unavailable(`${what}: given up`, { cause: error });
          if (await deps.works(error).catch(() => false)) {
            if (++faults >= faultsMax) throw error;
          } else faults = 0;
          const ms = Math.min(pauseMax_ms, deps.retry_ms * 2 ** Math.min(attempt, 10)) * (0.75 + deps.random.unit() / 2);
          if (deadline !== undefined && clock.now() + ms >= deadline) throw new Unavailable(`${what}: past its deadline`, { cause: error });
          if (!over) await pause(ms);
        }
      }
    },
    giveUp() {
      over = true;
      for (const wake of [...sleepers]) wake();
    },
    pause,
  };
}
