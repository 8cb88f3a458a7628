/** How bad the world is. Everything is 0 by default: then nothing takes time and nothing goes wrong. Times are virtual milliseconds, [least, most]. */
export interface Faults {
  /** Share of bus messages that are lost, arrive twice, or overtake others. */
  readonly bus_drop: number;
  readonly bus_repeat: number;
  readonly bus_reorder: number;
  readonly bus_ms: readonly [number, number];
  /** How much later than others a repeated or overtaken message arrives. */
  readonly bus_late_ms: readonly [number, number];
  readonly store_ms: readonly [number, number];
  /** Of a piece that is written to a file, and of its end. */
  readonly media_ms: readonly [number, number];
  readonly outbox_ms: readonly [number, number];
  readonly socket_ms: readonly [number, number];
}

export const noFaults: Faults = {
  bus_drop: 0,
  bus_repeat: 0,
  bus_reorder: 0,
  bus_ms: [0, 0],
  bus_late_ms: [1, 200],
  store_ms: [0, 0],
  media_ms: [0, 0],
  outbox_ms: [0, 0],
  socket_ms: [0, 0],
};

/**
 * Faults put into the world on purpose, one promise of the product broken each, so that tests can show that the checks
 * notice. Never on otherwise.
 */
export type Break =
  /** Idempotency keys are forgotten: what is asked again happens again. */
  | 'forget_keys'
  /** Edges cannot read the outbox: gaps stay, `sync` is empty. */
  | 'no_repair'
  /** The store says that messages are committed, and loses every third. */
  | 'answer_before_store'
  /** Cursors are reserved twice. */
  | 'reuse_cursors'
  /** `agent.idle` is appended twice. */
  | 'double_idle'
  /** Ephemeral frames come again later, as if they were new. */
  | 'stale_updates'
  /** Answers reach the device twice. */
  | 'answer_twice'
  /** A device that says hello is taken to have everything that was ever sent to it. */
  | 'confirm_ahead'
  /** Deleted messages are said to be deleted, and stay in the store. */
  | 'keep_deleted'
  /** Search does not know the newest message it should find. */
  | 'search_behind'
  /** Pages of history begin one message too early. */
  | 'skip_in_history'
  /** Nobody hears that the agent has their message. */
  | 'lose_receipts'
  /** A device that was away when the agent took its message is not told when it is back. */
  | 'forget_owed_receipts'
  /** Who sends hears at once that the agent has it. */
  | 'early_receipts'
  /** Each receipt names the message of the one before it. */
  | 'mixed_receipts'
  /** No device hears what another one has read. */
  | 'lose_reads'
  /** How far a device has read goes back when it says so. */
  | 'reads_go_back'
  /** Edges are told that nothing was before a frame: gaps are not seen. */
  | 'hide_gaps';
