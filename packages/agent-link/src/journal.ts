import type { Clock, Timer } from './clock.js';
import { frame_bytes_max, type Kept, type Up } from './frame.js';
import type { Log } from './log.js';
import { type Outlet, type Sender, sender } from './outlet.js';
import { applyRecord, emptyState, headOf, type Spool, type SpoolHead, type SpoolRecord, type SpoolState } from './spool.js';
import { byteLength } from './text.js';

type Entry =
  | { readonly kind: 'kept'; readonly frame: Kept }
  | { readonly kind: 'passing' | 'urgent'; readonly outlet: Outlet; readonly frame: Up }
  | { readonly kind: 'processed'; readonly seq: number }
  | { readonly kind: 'resume'; readonly outlet: Outlet }
  | { readonly kind: 'startOver'; readonly head: SpoolHead }
  | { readonly kind: 'then'; readonly run: () => void };

/**
 * Everything that leaves, in one order: what is durable is stored first and sent then, and nothing overtakes it.
 * So whatever the gateway has seen of us, we still know after a crash; and what we have acked is stored as well.
 */
export interface Journal {
  readonly state: SpoolState;
  /** Say something durable. Returns its `seq`. @throws RangeError when it is larger than a frame may be */
  keep(frame: Up): number;
  /** Say something that may be lost. False: nobody is there to hear it, or not now, see {@link congested}. */
  pass(frame: Up): boolean;
  /** So much is unacked that more waits: what may be lost would be lost. */
  readonly congested: boolean;
  /** Say something that is not numbered, past what waits for acks: requests, and answers that an ack must not overtake. False: no link is up. */
  say(frame: Up): boolean;
  /** The gateway's frames up to `seq` are done with. They are acked when that is stored. */
  processed(seq: number): void;
  /** The gateway has ours up to `seq`. */
  acked(seq: number): void;
  /** Run when everything said so far is stored. */
  onceStored(run: () => void): void;
  /** The link is up: send again what is unacked, then all that is said from now on. */
  resume(outlet: Outlet): void;
  /** The link is down. */
  detach(outlet: Outlet): void;
  /** Be another installation from now on: both sequences begin anew, and nothing of the old one is said any more. */
  startOver(install_id: string): void;
  /** Say the ack again: the gateway repeated something, so it has not heard it. */
  ackAgain(): void;
  /** Highest `seq` of the gateway that is processed and stored. */
  readonly stored_in: number;
  /** Resolves when nothing waits to be stored. */
  idle(): Promise<void>;
  /** Resolves when the gateway has acked everything. */
  flushed(): Promise<void>;
  /** Nothing is stored or sent any more. */
  close(): void;
}

const retry_ms = 1_000;

export function journal(options: { spool: Spool; clock: Clock; log: Log }): Journal {
  const { spool, clock, log } = options;
  const { state } = spool;
  let queue: Entry[] = [];
  let working = false;
  let retry: Timer | undefined;
  let ackRecord: number | undefined;
  const idleWaiters: (() => void)[] = [];
  const flushWaiters: (() => void)[] = [];
  /** Who hears what is said now, and who has been brought up to date and is being sent to. */
  let target: Outlet | undefined;
  let live: Sender | undefined;
  let stored_out = state.next_seq - 1;
  let stored_in = state.in_seq;
  let said_ack = -1;
  let closed = false;
  /** Rises when all begins anew: what was under way by then is not said any more. */
  let era = 0;

  const put = (entry: Entry): void => {
    queue.push(entry);
    work();
  };

  /** Store and send what waits; while a batch is being written the next one gathers. */
  function work(): void {
    if (working || closed) return;
    working = true;
    while (queue.length > 0 || ackRecord !== undefined) {
      const batch = queue;
      queue = [];
      const records = recordsOf(batch);
      const written = records.length > 0 ? spool.append(records) : undefined;
      if (written) {
        void write(written, records, batch);
        return;
      }
      deliver(batch);
    }
    working = false;
    for (const done of idleWaiters.splice(0)) done();
  }

  async function write(written: Promise<void>, records: readonly SpoolRecord[], batch: readonly Entry[], since = era): Promise<void> {
    try {
      await written;
    } catch (error) {
      // A full disk must not turn into a lost or a twice-numbered frame: nothing is said until it is stored.
      log.error('agent_link.spool_write', { error });
      if (closed) return;
      retry = clock.after(retry_ms, () => void write(spool.append(records) ?? Promise.resolve(), records, batch, since));
      return;
    }
    retry = undefined;
    if (closed) return;
    if (since === era) deliver(batch);
    working = false;
    work();
  }

  function recordsOf(batch: readonly Entry[]): SpoolRecord[] {
    const records: SpoolRecord[] = [];
    for (const entry of batch) {
      if (entry.kind === 'kept') records.push({ k: 'out', f: entry.frame });
      else if (entry.kind === 'processed') records.push({ k: 'in', seq: entry.seq });
      else if (entry.kind === 'startOver') records.push(entry.head);
    }
    if (ackRecord !== undefined) records.push({ k: 'ack', seq: ackRecord });
    ackRecord = undefined;
    return records;
  }

  function deliver(batch: readonly Entry[]): void {
    const since = era;
    for (const entry of batch) {
      if (since !== era) return;
      switch (entry.kind) {
        case 'kept':
          stored_out = entry.frame.seq;
          live?.put(entry.frame);
          break;
        case 'passing':
          if (entry.outlet === live?.outlet) live.put(entry.frame);
          break;
        case 'urgent':
          if (entry.outlet === live?.outlet) sendNow(live.outlet, entry.frame);
          break;
        case 'processed':
          stored_in = Math.max(stored_in, entry.seq);
          break;
        case 'resume':
          if (entry.outlet !== target) break;
          live = sender(target, envelope);
          for (const frame of [...state.unacked]) if (frame.seq <= stored_out) live.put(frame);
          break;
        case 'startOver':
          break;
        case 'then':
          try {
            entry.run();
          } catch (error) {
            log.error('agent_link.then_fault', { error });
          }
      }
    }
    if (live && said_ack !== stored_in && stored_in > 0) sendNow(live.outlet, { type: 'ack', payload: {} });
  }

  const sendNow = (outlet: Outlet, frame: Up) => outlet.send(JSON.stringify({ v: 1, ...envelope(), ...frame }));
  function envelope(): object {
    said_ack = stored_in;
    return stored_in > 0 ? { ack: stored_in } : {};
  }

  function pass(kind: 'passing' | 'urgent', frame: Up): boolean {
    if (!target) return false;
    put({ kind, outlet: target, frame });
    return true;
  }

  return {
    state,
    keep(frame) {
      const bytes = byteLength(JSON.stringify(frame));
      if (bytes > frame_bytes_max) throw new RangeError(`${frame.type} of ${bytes} bytes: at most ${frame_bytes_max}`);
      const kept = { ...frame, seq: state.next_seq } as Kept;
      applyRecord(state, { k: 'out', f: kept });
      put({ kind: 'kept', frame: kept });
      return kept.seq;
    },
    pass: (frame) => live?.waiting !== true && pass('passing', frame),
    say: (frame) => pass('urgent', frame),
    processed(seq) {
      applyRecord(state, { k: 'in', seq });
      put({ kind: 'processed', seq });
    },
    acked(seq) {
      if (seq <= state.acked) return;
      applyRecord(state, { k: 'ack', seq });
      live?.acked(seq);
      stored_out = Math.max(stored_out, seq);
      ackRecord = seq;
      work();
      if (state.unacked.length === 0) for (const done of flushWaiters.splice(0)) done();
    },
    onceStored: (run) => put({ kind: 'then', run }),
    resume(outlet) {
      target = outlet;
      live = undefined;
      said_ack = -1;
      put({ kind: 'resume', outlet });
    },
    detach(outlet) {
      if (target === outlet) target = undefined;
      if (live?.outlet === outlet) live = undefined;
    },
    startOver(install_id) {
      const head = { ...headOf(emptyState(install_id)), ended: [...state.ended, ...state.turns.keys()] };
      applyRecord(state, head);
      queue = [];
      era++;
      ackRecord = undefined;
      target = undefined;
      live = undefined;
      stored_out = 0;
      stored_in = 0;
      put({ kind: 'startOver', head });
    },
    ackAgain() {
      said_ack = -1;
      put({ kind: 'then', run: () => {} });
    },
    get congested() {
      return live?.waiting === true;
    },
    get stored_in() {
      return stored_in;
    },
    close() {
      closed = true;
      retry?.cancel();
      for (const done of [...idleWaiters.splice(0), ...flushWaiters.splice(0)]) done();
    },
    flushed: () =>
      state.unacked.length > 0 && !closed ? new Promise<void>((resolve) => void flushWaiters.push(resolve)) : Promise.resolve(),
    idle: () => (working && !closed ? new Promise<void>((resolve) => idleWaiters.push(resolve)) : Promise.resolve()),
  };
}
