import { type Clock, heap, type Timer } from '@iris/runtime';
import type { Chance } from './chance.js';

/**
 * The time of a whole world in one process. It stands still until told; each simulated process has its own clock on it,
 * which can be killed. What one process asked for `soon` runs in order; between processes, whatever is ready may
 * run first: in the order it became ready, or as the seed says.
 * Sound for code whose only waiting is on promises and clocks: real I/O is not waited for.
 */
export interface Timeline {
  now(): number;
  process(name: string): ProcessClock;
  /** Run until nothing is ready at this instant. No time passes. */
  settle(): Promise<void>;
  advance(ms: number): Promise<void>;
  /**
   * What `found` gives, as soon as it gives something; undefined when it has not within `ms`. While somebody waits, time passes,
   * event by event; but not while a `settle` or `advance` is at work, so that a test can hold an instant still.
   */
  until<T>(found: () => T | undefined, ms: number): Promise<T | undefined>;
  /** Ask all that wait to look again. */
  stir(): void;
  /** Nobody waits any longer: what still does is rejected. */
  end(): void;
  /** Timers that are set, over all processes. */
  readonly timers: number;
  /** How many things have run since the start: the same for the same seed. */
  readonly steps: number;
}

export interface ProcessClock extends Clock {
  readonly name: string;
  readonly alive: boolean;
  /** As SIGKILL: nothing that was set on this clock ever runs, and nothing that is set later. */
  kill(): void;
  /** As SIGSTOP: what is due waits until {@link thaw}. */
  freeze(): void;
  thaw(): void;
  /** Its clock says `ms` more than the truth, or less. */
  skew(ms: number): void;
}

interface Entry {
  readonly due: number;
  readonly order: number;
  readonly process: Process;
  readonly run: () => void;
  state: 'waiting' | 'ready' | 'cancelled';
}

interface Process {
  alive: boolean;
  frozen: boolean;
  /** Ready to run now, first in first out. */
  ready: { readonly run: () => void; readonly order: number; readonly entry?: Entry }[];
}

/** A turn of the real loop: promises that depend on nothing outside have all run when it comes back. */
const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/**
 * @param options.shuffle who of several ready processes runs next; without it, who became ready first
 * @param options.held waiting alone lets no time pass: only `advance` does
 */
export function timeline(options: { start?: number; shuffle?: Chance; held?: boolean } = {}): Timeline {
  let now = options.start ?? Date.UTC(2026, 0, 1);
  let order = 0;
  let steps = 0;
  let cancelled = 0;
  const waiting = heap<Entry>((a, b) => a.due < b.due || (a.due === b.due && a.order < b.order));
  const processes = new Set<Process>();
  const { shuffle } = options;

  /** Move everything due by now to its process's queue. */
  const release = () => {
    for (let entry = waiting.first; entry !== undefined && entry.due <= now; entry = waiting.first) {
      waiting.pop();
      if (entry.state === 'cancelled') cancelled--;
      else {
        entry.state = 'ready';
        entry.process.ready.push({ run: entry.run, order: order++, entry });
      }
    }
  };
  const choose = (): Process | undefined => {
    const able: Process[] = [];
    for (const process of processes) if (!process.frozen && process.ready.length > 0) able.push(process);
    if (able.length <= 1) return able[0];
    if (shuffle) return shuffle.pick(able);
    return able.reduce((first, one) => (one.ready[0]!.order < first.ready[0]!.order ? one : first));
  };
  /** Runs one ready thing, and all promises it set off. */
  const step = async (): Promise<boolean> => {
    release();
    const process = choose();
    if (process === undefined) return false;
    const { run, entry } = process.ready.shift()!;
    if (entry?.state === 'cancelled') return true;
    steps++;
    run();
    await turn();
    return true;
  };
  const nextDue = (): number | undefined => {
    for (let entry = waiting.first; entry !== undefined; entry = waiting.first) {
      if (entry.state !== 'cancelled') return entry.due;
      waiting.pop();
      cancelled--;
    }
    return undefined;
  };
  interface Waiter {
    readonly until: number;
    /** True when it has been dealt with. `over`: nothing more will happen at this instant. */
    look(over: boolean): boolean;
    fail(error: Error): void;
  }
  const waiters = new Set<Waiter>();
  const look = (over = false) => {
    for (const waiter of [...waiters]) if (waiter.look(over)) waiters.delete(waiter);
  };
  /** How many `settle`s and `advance`s are at work: meanwhile no waiting makes anything happen. */
  let exclusive = 0;
  let driving = false;
  const drive = async () => {
    if (driving || options.held) return;
    driving = true;
    await turn();
    try {
      for (look(); waiters.size > 0; look()) {
        if (exclusive > 0) await turn();
        else if (!(await step())) {
          const limit = Math.min(...[...waiters].map(({ until }) => until));
          const due = nextDue();
          if (due === undefined || due > limit) {
            now = Math.max(now, limit);
            look(true);
          } else now = Math.max(now, due);
        }
      }
    } catch (error) {
      // What a timer throws would end its process: here it ends the test that waits.
      for (const waiter of [...waiters]) waiter.fail(error as Error);
      waiters.clear();
    } finally {
      driving = false;
    }
  };
  const until = <T>(found: () => T | undefined, ms: number): Promise<T | undefined> =>
    new Promise((resolve, reject) => {
      const end = now + ms;
      waiters.add({
        until: end,
        fail: reject,
        look(over) {
          try {
            const value = found();
            if (value === undefined && (over ? now < end : now <= end)) return false;
            resolve(value);
          } catch (error) {
            reject(error as Error);
          }
          return true;
        },
      });
      void drive();
    });
  const alone = async (end: number) => {
    exclusive++;
    try {
      await turn();
      for (look(); ; look()) {
        if (await step()) continue;
        const due = nextDue();
        if (due === undefined || due > end) break;
        now = Math.max(now, due);
      }
      now = Math.max(now, end);
      look();
    } finally {
      exclusive--;
    }
  };

  const processClock = (name: string): ProcessClock => {
    const process: Process = { alive: true, frozen: false, ready: [] };
    processes.add(process);
    const arm = (due: number, run: () => void): Entry => {
      const entry: Entry = { due, order: order++, process, run, state: 'waiting' };
      waiting.push(entry);
      return entry;
    };
    const cancel = (entry: Entry) => {
      if (entry.state === 'waiting') cancelled++;
      entry.state = 'cancelled';
      // Cancelled timers stay in the heap until they are due, or until they are most of it.
      if (cancelled > 256 && cancelled * 2 > waiting.size) {
        waiting.keep((one) => one.state !== 'cancelled');
        cancelled = 0;
      }
    };
    const nothing: Timer = { cancel() {} };
    let skew = 0;
    return {
      name,
      get alive() {
        return process.alive;
      },
      now: () => now + skew,
      after(ms, run) {
        if (!process.alive) return nothing;
        // As in Node, a timer never fires in the instant it is set, and counts whole milliseconds.
        const entry = arm(now + Math.max(1, Math.floor(ms)), run);
        return { cancel: () => cancel(entry) };
      },
      every(ms, run) {
        if (!process.alive) return nothing;
        const step = Math.max(1, Math.floor(ms));
        let ended = false;
        let entry: Entry;
        const fire = () => {
          // A process that was frozen does not make up for the ticks it missed.
          if (!ended) entry = arm(now + step, fire);
          run();
        };
        entry = arm(now + step, fire);
        return {
          cancel() {
            ended = true;
            cancel(entry);
          },
        };
      },
      soon(run) {
        if (process.alive) process.ready.push({ run, order: order++ });
      },
      skew(ms) {
        skew = ms;
      },
      kill() {
        process.alive = false;
        process.ready = [];
        processes.delete(process);
        waiting.keep((entry) => entry.process !== process && entry.state !== 'cancelled');
        cancelled = 0;
      },
      freeze: () => {
        process.frozen = true;
      },
      thaw: () => {
        process.frozen = false;
      },
    };
  };

  return {
    now: () => now,
    process: processClock,
    until,
    stir: () => look(),
    end() {
      for (const waiter of [...waiters]) waiter.fail(new Error('the world has ended'));
      waiters.clear();
    },
    settle: () => alone(now),
    advance: (ms) => alone(now + ms),
    get timers() {
      return waiting.size - cancelled;
    },
    get steps() {
      return steps;
    },
  };
}
