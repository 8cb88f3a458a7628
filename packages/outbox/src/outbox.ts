import type { ConnectionId, Cursor, DeviceId, EdgeId, TenantId } from '@iris/protocol';

/**
 * The ordered log of each tenant's durable frames, and what must be exactly as fresh as it: who listens, how far each
 * device has come, and what is going on. All of it can be lost and made again from Postgres; see {@link OutboxRefusal}.
 * It knows nothing of what a frame says.
 */
export interface Outbox {
  /**
   * Give each frame the next cursor of its tenant, in order, in one atomic step per tenant; all batches in one trip.
   * A frame whose `key` was appended before is not appended again: its first cursor is returned.
   * A batch that is refused had no effect at all.
   */
  append(batches: readonly AppendBatch[]): Promise<(Appended | OutboxRefusal)[]>;
  /** Start the tenant's sequence at `at` (nothing at or below it will be given), allow it up to `limit`, and forget the rest. */
  seed(tenant_id: TenantId, at: Cursor, limit: Cursor, last_known?: Cursor): Promise<void>;
  /** Allow cursors up to `limit`; never lowers it. */
  extend(tenant_id: TenantId, limit: Cursor): Promise<void>;

  /** Durable frames above `after`, oldest first, at most `limit` frames or about `max_bytes` (at least one). */
  read(tenant_id: TenantId, after: Cursor, options: { limit: number; max_bytes?: number; compact?: boolean }): Promise<OutboxPage>;
  /** Heads of many tenants in one trip; 0 for a tenant without one. */
  heads(tenant_ids: readonly TenantId[]): Promise<Cursor[]>;
  /** Remove the entries of these messages (exactly, by index), or every entry of a lane. Returns how many went. */
  forget(tenant_id: TenantId, what: { message_ids: readonly string[] } | { lane: string }): Promise<number>;
  /** Drop what is past the tenant's retention; returns the new floor. */
  trim(tenant_id: TenantId, keep: { max_frames: number; before_ms: number }): Promise<Cursor>;

  /**
   * A device says hello: its connection becomes the device's live one and its edge one that appends are sent to.
   * Returns the head at that instant: every later append knows the edge, every earlier one is at or below the head.
   */
  register(
    tenant_id: TenantId,
    device: { device_id: DeviceId; edge_id: EdgeId; connection_id: ConnectionId; watermark: Cursor; new: boolean },
  ): Promise<Registered | OutboxRefusal>;
  /** The connection is gone. Does nothing when another has taken the device over since. */
  unregister(tenant_id: TenantId, device: { device_id: DeviceId; edge_id: EdgeId; connection_id: ConnectionId }): Promise<void>;
  /**
   * An edge says again, every few seconds, what it holds: entries not refreshed for `lease_ms` stop being routed to.
   * Registers again what was lost. Returns the connections whose device has moved on: close them with 4409.
   */
  refresh(
    edge_id: EdgeId,
    held: readonly { tenant_id: TenantId; device_id: DeviceId; connection_id: ConnectionId }[],
  ): Promise<ConnectionId[]>;

  /** Watermarks; each only rises. */
  confirm(marks: readonly { tenant_id: TenantId; device_id: DeviceId; cursor: Cursor }[]): Promise<void>;
  watermark(tenant_id: TenantId, device_id: DeviceId): Promise<Cursor | undefined>;
  /** Device → its live connection, with the watermark. */
  devices(tenant_id: TenantId): Promise<{ device_id: DeviceId; watermark: Cursor; edge_id?: EdgeId; connection_id?: ConnectionId }[]>;

  /** Small per-tenant values beside the outbox (turn state, text so far). `null` removes. Lost with it. */
  put(tenant_id: TenantId, values: Record<string, string | null>): Promise<void>;
  values(tenant_id: TenantId): Promise<Map<string, string>>;

  /** Everything of a tenant, gone. */
  drop(tenant_id: TenantId): Promise<void>;

  readonly connected: boolean;
  /** Called when the store behind it was reached again after a loss: routing must be registered anew. */
  onReconnected(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface AppendBatch {
  readonly tenant_id: TenantId;
  readonly frames: readonly AppendFrame[];
  /** The tenant's retention, enforced as a floor at once and by {@link Outbox.trim} for good. */
  readonly max_frames: number;
}

export interface AppendFrame {
  /** The stored bytes are the sent bytes: no cursor, no id in them. */
  readonly body: Uint8Array;
  readonly type: string;
  /** Remembered for 24 h. */
  readonly key?: string;
  /** For {@link Outbox.forget}. */
  readonly message_ids?: readonly string[];
  readonly lane?: string;
  /** In a compacted read only the newest frame of each such key is given. */
  readonly supersedes?: string;
  readonly except_device_id?: DeviceId;
  readonly push: boolean;
}

export interface Appended {
  readonly refused?: undefined;
  /** One per frame, in order. */
  readonly cursors: readonly Cursor[];
  /** Whether each was appended by this call. */
  readonly fresh: readonly boolean[];
  /** The cursor before the first fresh one, as {@link OutboxEntry.previous}. */
  readonly previous: Cursor;
  /** Edges that hold devices of the tenant now. */
  readonly edges: readonly EdgeId[];
}

/**
 * `unseeded`: the tenant has no sequence here, or it may have stepped back because the server was restarted or replaced:
 * reserve cursors in Postgres, then {@link Outbox.seed}. `exhausted`: reserve, then {@link Outbox.extend}.
 */
export interface OutboxRefusal {
  readonly refused: 'unseeded' | 'exhausted';
}

export interface OutboxEntry {
  readonly cursor: Cursor;
  readonly type: string;
  readonly message_id?: string;
  readonly except_device_id?: DeviceId;
  readonly push: boolean;
  readonly body: Uint8Array;
}

export interface OutboxPage {
  readonly entries: readonly OutboxEntry[];
  /** Where the next read goes on from: the last cursor looked at, also when what stood there was left out. */
  readonly next: Cursor;
  readonly head: Cursor;
  /** Nothing at or below it can be read any more; `after` below it means a gap. */
  readonly floor: Cursor;
  /**
   * Set after a seed: cursors in (`last_known`, `floor`] were never given, so a reader at or above `last_known` has lost nothing.
   */
  readonly last_known?: Cursor;
}

export interface Registered {
  readonly refused?: undefined;
  readonly head: Cursor;
  readonly floor: Cursor;
  readonly watermark: Cursor;
  readonly replaced?: { readonly edge_id: EdgeId; readonly connection_id: ConnectionId };
}
