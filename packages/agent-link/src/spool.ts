import type { Kept } from './frame.js';

/** A turn that was accepted and whose end the gateway has not acked yet. */
export interface SpooledTurn {
  readonly chat_id: string;
  readonly thread_id: string | null;
  /** `seq` of its `turn.end`, once that is said. */
  readonly end_seq?: number;
}

/** What must survive the process: both sequences, what the gateway has not acked, and which turns were begun. */
export interface SpoolState {
  /** The gateway counts both sequences per installation. */
  install_id: string;
  /** Of the next durable frame. */
  next_seq: number;
  /** Everything of ours up to here is processed and stored by the gateway. */
  acked: number;
  /** The same of the gateway's frames, by us. */
  in_seq: number;
  /** In order of `seq`, all above {@link acked}. */
  readonly unacked: Kept[];
  readonly turns: Map<string, SpooledTurn>;
  /** The latest turns that are over, oldest first: they are never run again. */
  readonly ended: Set<string>;
}

/** One step of the state. Applying the same one twice changes nothing. */
export type SpoolRecord =
  /** A durable frame is about to be sent. */
  | { readonly k: 'out'; readonly f: Kept }
  /** The gateway's frames up to `seq` are processed. */
  | { readonly k: 'in'; readonly seq: number }
  /** The gateway has ours up to `seq`. Safe to lose: it says so again at the next `hello`. */
  | { readonly k: 'ack'; readonly seq: number }
  /** All of the state, whatever was before. */
  | SpoolHead;

/** The whole state but for unacked frames, each of which follows as an `out`. The first line of a file. */
export interface SpoolHead {
  readonly k: 'head';
  readonly v: 1;
  readonly install_id: string;
  readonly next_seq: number;
  readonly acked: number;
  readonly in_seq: number;
  readonly turns: readonly (readonly [string, SpooledTurn])[];
  readonly ended: readonly string[];
}

/** Where the state is kept. One writer: {@link append} is called again only when the last call is done. */
export interface Spool {
  /** Kept current by the caller, by {@link applyRecord}, before the records are appended. */
  readonly state: SpoolState;
  /** Undefined: there is nothing to wait for. Else resolves when the records would survive a crash; rejected ones may be given again. */
  append(records: readonly SpoolRecord[]): Promise<void> | undefined;
  close(): Promise<void>;
}

const ended_max = 1_000;

export const emptyState = (install_id: string): SpoolState => ({
  install_id,
  next_seq: 1,
  acked: 0,
  in_seq: 0,
  unacked: [],
  turns: new Map(),
  ended: new Set(),
});

export function applyRecord(state: SpoolState, record: SpoolRecord): void {
  switch (record.k) {
    case 'in':
      state.in_seq = Math.max(state.in_seq, record.seq);
      return;
    case 'ack':
      applyAck(state, record.seq);
      return;
    case 'out':
      applyOut(state, record.f);
      return;
    case 'head':
      applyHead(state, record);
  }
}

function applyHead(state: SpoolState, head: SpoolHead): void {
  if (head.v !== 1) throw new Error(`spool format ${String(head.v)} is not known here`);
  state.install_id = head.install_id;
  state.next_seq = head.next_seq;
  state.acked = head.acked;
  state.in_seq = head.in_seq;
  state.unacked.length = 0;
  state.turns.clear();
  for (const [turn_id, turn] of head.turns) state.turns.set(turn_id, turn);
  state.ended.clear();
  for (const turn_id of head.ended) state.ended.add(turn_id);
}

function applyOut(state: SpoolState, frame: Kept): void {
  if (frame.seq < state.next_seq) return;
  state.next_seq = frame.seq + 1;
  state.unacked.push(frame);
  const { turn_id } = frame;
  if (turn_id === undefined) return;
  if (frame.type === 'turn.accepted') {
    state.turns.set(turn_id, { chat_id: frame.chat_id ?? '', thread_id: frame.thread_id ?? null });
  } else if (frame.type === 'turn.end') {
    const turn = state.turns.get(turn_id);
    if (turn) state.turns.set(turn_id, { ...turn, end_seq: frame.seq });
  }
}

function applyAck(state: SpoolState, seq: number): void {
  if (seq <= state.acked) return;
  state.acked = seq;
  state.next_seq = Math.max(state.next_seq, seq + 1);
  let gone = 0;
  while (gone < state.unacked.length && state.unacked[gone]!.seq <= seq) gone++;
  for (const frame of state.unacked.splice(0, gone)) {
    if (frame.type !== 'turn.end' || frame.turn_id === undefined) continue;
    state.turns.delete(frame.turn_id);
    state.ended.add(frame.turn_id);
    for (const oldest of state.ended) {
      if (state.ended.size <= ended_max) break;
      state.ended.delete(oldest);
    }
  }
}

export const headOf = (state: SpoolState): SpoolHead => ({
  k: 'head',
  v: 1,
  install_id: state.install_id,
  // The frames that follow bring it to its true value.
  next_seq: state.unacked[0]?.seq ?? state.next_seq,
  acked: state.acked,
  in_seq: state.in_seq,
  turns: [...state.turns],
  ended: [...state.ended],
});

/** Nothing outlives the process: each start is a new installation, to which the gateway gives what the last one had not acked. */
export const memorySpool = (install_id: string): Spool => ({
  state: emptyState(install_id),
  append: () => undefined,
  close: async () => {},
});
