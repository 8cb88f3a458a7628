import type { ToSession } from '@iris/bus';
import type { Answer } from './context.js';

export type Request = Extract<ToSession, { kind: 'request' }>;
export type Update = Extract<ToSession, { kind: 'update' }>;

/** What has become of a request: its answer, or that nobody here will give one. */
export type Outcome = Answer | 'abandoned';

/** One connection's requests, in the order it sent them. */
export interface Line {
  take(request: Request): void;
  update(update: Update): void;
  /** Nothing of it is under way here. */
  readonly idle: boolean;
}

/** Requests that may wait for one before them: more are dropped, and asked again. */
const waitingMax = 5_000;
const updatesMax = 1_000;
/** Requests of one connection under way at once. */
const runningMax = 256;

/**
 * The order of one connection. Requests are handled by rising `n`, from the lowest that the edge has no answer to; early ones wait; one
 * that comes again is answered from memory, or not at all while it is under way. The next may begin when the one before it
 * is done, or, where both allow it, when it has its place in the tenant's order. Updates wait for the requests they came after.
 */
export function createLine(options: {
  base: number;
  /** Whether a type may begin while others are under way before it. */
  pipelined: (request: Request) => boolean;
  /** Never rejects. `entered` is called at most once; being done counts as well. */
  run: (request: Request, entered: () => void) => Promise<Outcome>;
  /** @param again it was given before: whatever came of that, this must be enough to answer */
  answer: (n: number, answer: Answer, again: boolean) => void;
  update: (update: Update) => void;
  /** Requests in between were handled elsewhere: what is remembered of this connection may be old. */
  skipped: () => void;
}): Line {
  /** The lowest `n` that has not begun. */
  let next = options.base;
  const waiting = new Map<number, Request>();
  const running = new Set<number>();
  const answers = new Map<number, Answer>();
  let entering = false;
  let { base } = options;
  let updates: Update[] = [];
  /** Every request up to here is done. */
  const doneUpTo = () => (running.size === 0 ? next - 1 : Math.min(...running) - 1);

  const pump = () => {
    for (;;) {
      const request = waiting.get(next);
      if (request === undefined || entering) break;
      if (running.size > 0 && (!options.pipelined(request) || running.size >= runningMax)) break;
      waiting.delete(next);
      next++;
      start(request);
    }
    if (updates.length === 0) return;
    const upTo = doneUpTo();
    const ready = updates.filter(({ after_n }) => after_n <= upTo);
    if (ready.length === 0) return;
    updates = updates.filter(({ after_n }) => after_n > upTo);
    for (const update of ready) options.update(update);
  };
  const start = (request: Request) => {
    const { n } = request;
    running.add(n);
    entering = true;
    let entered = false;
    const enter = () => {
      if (entered) return;
      entered = true;
      entering = false;
      pump();
    };
    void options.run(request, enter).then((outcome) => {
      running.delete(n);
      if (outcome !== 'abandoned') {
        if (n >= base) answers.set(n, outcome);
        options.answer(n, outcome, false);
      }
      if (entered) pump();
      else enter();
    });
  };
  const raise = (lowest: number) => {
    if (lowest <= base) return;
    base = lowest;
    for (const n of answers.keys()) if (n < base) answers.delete(n);
    if (base <= next) return;
    // The edge has answers to what never came here.
    for (const n of waiting.keys()) if (n < base) waiting.delete(n);
    next = base;
    options.skipped();
  };

  return {
    take(request) {
      raise(request.base);
      const { n } = request;
      if (n < request.base) return;
      if (n < next) {
        const answer = answers.get(n);
        if (answer !== undefined) options.answer(n, answer, true);
        return;
      }
      if (waiting.size < waitingMax) waiting.set(n, request);
      pump();
    },
    update(update) {
      if (updates.length < updatesMax) updates.push(update);
      pump();
    },
    get idle() {
      return running.size === 0 && waiting.size === 0;
    },
  };
}
