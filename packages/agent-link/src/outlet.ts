import type { Kept, Up } from './frame.js';

/** One connection as the journal sees it: where frames go while it lasts. */
export interface Outlet {
  send(text: string): void;
}

/** What goes to one connection, in order, and never more of it unacked at once than the gateway should have to hold. */
export interface Sender {
  readonly outlet: Outlet;
  put(frame: Up | Kept): void;
  /** The gateway has ours up to `seq`: there is room for more. */
  acked(seq: number): void;
  /** Something waits for acks. */
  readonly waiting: boolean;
}

/** Bytes that are sent and not acked; one frame goes whatever it weighs. */
export const window_bytes = 4 * 1024 * 1024;

/** @param envelope what every frame carries beside itself, at the moment it is sent */
export function sender(outlet: Outlet, envelope: () => object): Sender {
  const queue = fifo<Up | Kept>();
  const unacked = fifo<{ readonly seq: number; readonly bytes: number }>();
  let unacked_bytes = 0;

  const pump = () => {
    while (unacked_bytes < window_bytes || unacked.first() === undefined) {
      const frame = queue.shift();
      if (frame === undefined) return;
      const text = JSON.stringify({ v: 1, ...envelope(), ...frame });
      if ('seq' in frame) {
        unacked.push({ seq: frame.seq, bytes: text.length });
        unacked_bytes += text.length;
      }
      outlet.send(text);
    }
  };

  return {
    outlet,
    put(frame) {
      queue.push(frame);
      pump();
    },
    acked(seq) {
      for (let first = unacked.first(); first !== undefined && first.seq <= seq; first = unacked.first()) {
        unacked_bytes -= first.bytes;
        unacked.shift();
      }
      pump();
    },
    get waiting() {
      return queue.first() !== undefined;
    },
  };
}

/** First in, first out, at the same price whatever the length. */
function fifo<T>() {
  let items: T[] = [];
  let at = 0;
  return {
    push: (item: T) => void items.push(item),
    first: (): T | undefined => items[at],
    shift(): T | undefined {
      const item = items[at];
      if (item === undefined) return undefined;
      at++;
      // Half of it is gone: what is left moves once for every time that it was passed by.
      if (at > 64 && at * 2 > items.length) {
        items = items.slice(at);
        at = 0;
      }
      return item;
    },
  };
}
