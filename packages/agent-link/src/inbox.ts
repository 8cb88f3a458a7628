import type { Down } from './frame.js';

export interface InboxOptions {
  /** What earlier processes of this installation have processed. */
  readonly from: number;
  handle(frame: Down): void | Promise<void>;
  again(frame: Down): void;
  /** Every frame up to `seq` is done with. */
  processed(seq: number): void;
  gap(expected: number, got: number): void;
  fault(error: unknown, type: string): void;
}

/** The gateway's frames, each handled once and in order, however often they come. */
export interface Inbox {
  take(frame: Down): void;
  /** A new connection begins, with all that is not yet acked. */
  resumed(): void;
  /** Another sequence begins, at 1. */
  startOver(): void;
}

export function inbox(options: InboxOptions): Inbox {
  let received = options.from;
  let done = options.from;
  let holding = new Set<number>();
  /** Where a gap was seen that made us reconnect. If it is there again, the gateway has withdrawn those frames. */
  let gap_at: number | undefined;
  let resumed_at_gap = false;

  const advance = (): void => {
    const upTo = holding.size === 0 ? received : Math.min(...holding) - 1;
    if (upTo <= done) return;
    done = upTo;
    options.processed(done);
  };
  /** One broken frame must not stop those behind it. */
  const run = (frame: Down): void | Promise<void> => {
    try {
      return options.handle(frame);
    } catch (error) {
      options.fault(error, frame.type);
    }
  };

  return {
    take(frame) {
      const { seq } = frame;
      if (typeof seq !== 'number') return void run(frame);
      if (seq <= received) return options.again(frame);
      const expected = received + 1;
      if (seq > expected && !(resumed_at_gap && gap_at === expected)) {
        gap_at = expected;
        resumed_at_gap = false;
        return options.gap(expected, seq);
      }
      received = seq;
      const pending = run(frame);
      if (pending) {
        const held = holding;
        held.add(seq);
        void pending
          .catch((error) => options.fault(error, frame.type))
          .then(() => {
            held.delete(seq);
            if (held === holding) advance();
          });
      }
      advance();
    },
    resumed() {
      resumed_at_gap = true;
    },
    startOver() {
      received = 0;
      done = 0;
      holding = new Set();
      gap_at = undefined;
    },
  };
}
