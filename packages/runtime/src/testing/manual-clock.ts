import type { Clock, Timer } from '../clock.js';

/**
 * A clock that stands still until told. What is asked for `soon` runs by itself, after the promises that are waiting, so
 * a test may simply await a frame; timers run only inside {@link ManualClock.advance}.
 * Sound for code whose only waiting is on promises, `soon` and timers: real I/O is not waited for.
 */
export interface ManualClock extends Clock {
  /**
   * Let `ms` milliseconds pass: timers run one at a time in the order they are due (equal ones as they were set), and
   * after each, everything it set off is finished before the next. Rejects with what a timer throws.
   */
  advance(ms: number): Promise<void>;
  /** Until no promise and nothing asked for `soon` is left to run. No time passes. */
  settle(): Promise<void>;
  /** Timers that are set: 0 at the end of a test means that nothing leaked. */
  readonly timers: number;
  /** Milliseconds until the next timer; undefined when none is set. */
  untilNext(): number | undefined;
}

interface Waiting {
  readonly due: number;
  readonly order: number;
  readonly run: () => void;
  readonly every?: number;
}

/** @param start milliseconds since 1970; the default is a fixed day, so that runs are alike */
export function manualClock(start: number = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  let order = 0;
  const waiting = new Set<Waiting>();
  let queue: (() => void)[] = [];
  let draining = false;
  let advancing: Promise<void> = Promise.resolve();

  const drain = () => {
    draining = false;
    const batch = queue;
    queue = [];
    let at = 0;
    try {
      while (at < batch.length) batch[at++]!();
    } finally {
      // One that throws must not take those behind it along.
      if (at < batch.length) {
        queue = [...batch.slice(at), ...queue];
        wake();
      }
    }
  };
  const wake = () => {
    if (draining || queue.length === 0) return;
    draining = true;
    setImmediate(drain);
  };
  /** A turn of the real loop: promises that depend on nothing outside have all run when it comes back. */
  const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));
  const settle = async () => {
    do await turn();
    while (queue.length > 0);
  };

  const next = (): Waiting | undefined => {
    let first: Waiting | undefined;
    for (const one of waiting)
      if (first === undefined || one.due < first.due || (one.due === first.due && one.order < first.order)) first = one;
    return first;
  };
  const set = (ms: number, run: () => void, every?: number): Timer => {
    let current: Waiting;
    const arm = (due: number) => {
      current = { due, order: order++, run: fire, ...(every === undefined ? {} : { every }) };
      waiting.add(current);
    };
    const fire = () => {
      waiting.delete(current);
      if (every !== undefined) arm(current.due + every);
      run();
    };
    // As in Node, a timer never fires in the instant it is set: at least a millisecond passes.
    arm(now + Math.max(1, ms));
    return { cancel: () => void waiting.delete(current) };
  };
  const pass = async (ms: number) => {
    const until = now + ms;
    await settle();
    for (let one = next(); one !== undefined && one.due <= until; one = next()) {
      now = Math.max(now, one.due);
      one.run();
      await settle();
    }
    now = Math.max(now, until);
  };

  return {
    now: () => now,
    after: (ms, run) => set(ms, run),
    every: (ms, run) => set(ms, run, Math.max(1, ms)),
    soon(run) {
      queue.push(run);
      wake();
    },
    advance(ms) {
      const passed = advancing.then(() => pass(ms));
      advancing = passed.catch(() => {});
      return passed;
    },
    settle,
    get timers() {
      return waiting.size;
    },
    untilNext() {
      const one = next();
      return one === undefined ? undefined : Math.max(0, one.due - now);
    },
  };
}
