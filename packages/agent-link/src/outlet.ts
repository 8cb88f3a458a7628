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
  let queue: (Up | Kept)[] = [];
  let at = 0;
  let unacked: { readonly seq: number; readonly bytes: number }[] = [];
  let unacked_bytes = 0;

  const pump = () => {
    while (at < queue.length && (unacked_bytes < window_bytes || unacked.length === 0)) {
      const frame = queue[at++]!;
      const text = JSON.stringify({ v: 1, ...envelope(), ...frame });
      if ('seq' in frame) {
        unacked.push({ seq: frame.seq, bytes: text.length });
        unacked_bytes += text.length;
      }
      outlet.send(text);
    }
    if (at === queue.length || at > 1_000) {
      queue = queue.slice(at);
      at = 0;
    }
  };

  return {
    outlet,
    put(frame) {
      queue.push(frame);
      pump();
    },
    acked(seq) {
      let gone = 0;
      while (gone < unacked.length && unacked[gone]!.seq <= seq) unacked_bytes -= unacked[gone++]!.bytes;
      if (gone === 0) return;
      unacked = unacked.slice(gone);
      pump();
    },
    get waiting() {
      return at < queue.length;
    },
  };
}
