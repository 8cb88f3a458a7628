import type { ConnectionId, Cursor, DeviceId, EdgeId, TenantId } from '@iris/protocol';

/**
 * The ordered log of each tenant's durable frames, and what must be exactly as fresh as it: who listens, how far each
 * device has come, and what is going on. All of it can be lost and made again from Postgres; see {@link OutboxRefusal}.
 * It knows nothing of what a frame says.
 *
 * Every method rejects with {@link OutboxUnavailable}, within about two seconds, when the store behind it cannot be reached or
 * does not answer. What was asked may then have happened or not: ask again. Appending again is safe for frames with a `key`.
 */
export interface Outbox {
  /**
   * Give each frame the next cursor of its tenant, in order, in one atomic step per tenant; all batches in one trip.
   * A frame whose `key` was appended before, in an earlier batch or in this one, is not appended again: its first cursor is returned.
   * A batch that is refused had no effect at all. The bodies must not change until this settles.
   */
  append(batches: readonly AppendBatch[]): Promise<(Appended | OutboxRefusal)[]>;
  /**
   * Start the tenant's sequence at `at` (nothing at or below it will be given) and allow it up to `limit`. What was logged, its
   * keys and the {@link values} are forgotten; who listens and the watermarks stay. Where `last_known` shows that all that was given is
   * still here, what was logged and its keys stay too.
   * Does nothing when the tenant has a sequence that {@link append} accepts: of several who were refused one seeds, and what
   * was appended since stays. Never steps back: a sequence that had got beyond `at` goes on from there.
   * @param last_known an upper bound of the cursors given before; see {@link OutboxPage.last_known}
   */
  seed(tenant_id: TenantId, at: Cursor, limit: Cursor, last_known?: Cursor): Promise<void>;
  /** Allow cursors up to `limit`; never lowers it, and does nothing while the tenant is unseeded. */
  extend(tenant_id: TenantId, limit: Cursor): Promise<void>;

  /**
   * Durable frames above `after`, oldest first: looks at no more than `limit` frames and gives no more than `max_bytes` of bodies
   * (but at least one frame when there is one to give). Read on from `next` until it is the head: with `compact` a page can be empty before that.
   */
  read(tenant_id: TenantId, after: Cursor, options: { limit: number; max_bytes?: number; compact?: boolean }): Promise<OutboxPage>;
  /** Heads of many tenants in one trip; 0 for a tenant without one. */
  heads(tenant_ids: readonly TenantId[]): Promise<Cursor[]>;
  /**
   * Remove the entries of these messages (exactly, by index), or every entry of a lane. Returns how many went.
   * A frame that went still supersedes those before it.
   */
  forget(tenant_id: TenantId, what: { message_ids: readonly string[] } | { lane: string }): Promise<number>;
  /** Drop what is past the tenant's retention: all but the newest `max_frames`, and what was appended before `before_ms` (since 1970). Returns the new floor. */
  trim(tenant_id: TenantId, keep: { max_frames: number; before_ms: number }): Promise<Cursor>;

  /**
   * A device says hello: its connection becomes the device's live one and its edge one that appends are sent to.
   * Returns the head at that instant: every later append knows the edge, every earlier one is at or below the head.
   * The watermark becomes the higher of the one kept and the one given; a `new` device that none is kept of gets the head.
   */
  register(
    tenant_id: TenantId,
    device: { device_id: DeviceId; edge_id: EdgeId; connection_id: ConnectionId; watermark: Cursor; new: boolean },
  ): Promise<Registered | OutboxRefusal>;
  /** The connection is gone. Does nothing when another has taken the device over since. An edge's last one ends the routing to it. */
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
  /** Every device that has a watermark or a live connection (one whose lease has not run out). */
  devices(tenant_id: TenantId): Promise<{ device_id: DeviceId; watermark: Cursor; edge_id?: EdgeId; connection_id?: ConnectionId }[]>;

  /** Small per-tenant values beside the outbox (turn state, text so far). `null` removes. Lost with it. */
  put(tenant_id: TenantId, values: Record<string, string | null>): Promise<void>;
  values(tenant_id: TenantId): Promise<Map<string, string>>;

  /**
   * Take one from a bucket that everyone shares, such as failed hellos of an address; or, with `count` -1, give back one that was taken.
   * Lost with the outbox, and then full again. Returns 0, or the milliseconds to wait: then nothing was taken.
   */
  attempt(of: string, rate: { readonly per_minute: number; readonly burst: number }, count?: 1 | -1): Promise<number>;

  /** Everything of a tenant, gone. */
  drop(tenant_id: TenantId): Promise<void>;

  readonly connected: boolean;
  /** Called when the store behind it was reached again after a loss: routing must be registered anew. */
  onReconnected(listener: () => void): () => void;
  close(): Promise<void>;
}

/** The store behind the outbox cannot be reached, does not answer, or refuses work for now. Worth trying again. */
export class OutboxUnavailable extends Error {
  override readonly name = 'OutboxUnavailable';
}

/** How long a registration is routed to without being refreshed. */
export const lease_ms = 10_000;
/** Keys are remembered at least this long, and at most twice as long. */
export const keyKept_ms = 24 * 60 * 60 * 1000;

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
  /** Not empty. Remembered for at least 24 h and at most 48 h. */
  readonly key?: string;
  /** For {@link Outbox.forget}; without newlines. */
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
  /**
   * The cursor before the first fresh one in the tenant's order: usually the one below it; for the first after a seed
   * `last_known`, or where the sequence was seeded when that was not told.
   */
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
  /** The first of the frame's `message_ids`. */
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
   * Set after a seed: cursors above `last_known` up to where it began were never given, so a reader at or above `last_known` has lost nothing.
   */
  readonly last_known?: Cursor;
  /**
   * The tenant has no sequence here that {@link Outbox.append} would accept (see {@link OutboxRefusal}): what is given is true, but there
   * may be more, and `head` says nothing. Whoever needs to know the head waits until a session instance has seeded it.
   */
  readonly unseeded?: true;
}

export interface Registered {
  readonly refused?: undefined;
  readonly head: Cursor;
  readonly floor: Cursor;
  readonly watermark: Cursor;
  readonly replaced?: { readonly edge_id: EdgeId; readonly connection_id: ConnectionId };
}
