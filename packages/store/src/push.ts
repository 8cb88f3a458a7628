import type { ChatId, Cursor, DeviceId, Lane, MessageId, PickerId, TenantId } from '@iris/protocol';

/** Who carries a push. */
export type PushKind = 'fcm' | 'webpush' | 'ntfy';
/** What a frame is worth a push for. */
export type PushClass = 'reply' | 'cron' | 'failure' | 'picker' | 'notification';
/** How much of it the provider may read. `encrypted`: only the device. */
export type PushContent = 'full' | 'title' | 'ids' | 'encrypted';

/** A device's P-256 public key and shared secret, base64url, as in a Web Push subscription. */
export interface PushKeys {
  readonly p256dh: string;
  readonly auth: string;
}

export interface PushTargetRow {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly kind: PushKind;
  /** Token, subscription endpoint, or topic. */
  readonly address: string;
  readonly keys: PushKeys | null;
  /** New each time the device names the address. */
  readonly registration: number;
  readonly registered_at: number;
}

/** Hours of the day, `HH:MM`, in a time zone such as `Europe/Berlin`; `to` before `from` reaches over midnight. */
export interface QuietHours {
  readonly from: string;
  readonly to: string;
  readonly time_zone: string;
}

export interface PushRuleRow {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  /** Null: every lane of the device. */
  readonly chat_id: ChatId | null;
  readonly thread_id: Lane['thread_id'];
  /** Milliseconds since 1970; null: not muted. */
  readonly muted_until: number | null;
  readonly quiet: QuietHours | null;
}

export interface PushFrameRow extends Lane {
  readonly tenant_id: TenantId;
  readonly cursor: Cursor;
  readonly class: PushClass;
  readonly message_id: MessageId | null;
  readonly picker_id: PickerId | null;
  /** Of a notification. */
  readonly title: string | null;
  readonly body: string | null;
  readonly except_device_id: DeviceId | null;
  readonly at: number;
  /** Every device has its row in the ledger. */
  readonly decided: boolean;
}

export interface PushLedgerRow extends Lane {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly cursor: Cursor;
  readonly class: PushClass;
  /**
   * `pending` → `sending` (someone is asking the provider, until `due_at`) → `sent` (the provider accepted it), back to `pending` (to be
   * tried again at `due_at`), or `failed`. `skipped`: not pushed, `why` says why not. `collapsed`: the push of `with_cursor` stands for it.
   */
  readonly state: 'pending' | 'sending' | 'sent' | 'skipped' | 'failed' | 'collapsed';
  readonly why: string | null;
  readonly with_cursor: Cursor | null;
  /** The highest cursor that this push stands for: what `last_pushed_cursor` becomes. */
  readonly covers: Cursor;
  readonly provider: PushKind | null;
  /** What the provider said last. */
  readonly answer: string | null;
  readonly attempts: number;
  readonly due_at: number;
  readonly decided_at: number;
  readonly sent_at: number | null;
  /** The shown notification was taken back, or replaced. */
  readonly withdrawn_at: number | null;
}
export type LedgerKey = Pick<PushLedgerRow, 'tenant_id' | 'device_id' | 'cursor'>;

/** One that may be sent now. */
export interface Claimed extends LedgerKey {
  /** Of how many other lanes the device was pushed before it was first pushed for this one, and has not come for any of it since. */
  readonly lanes_before: number;
}

/** What became of one attempt. */
export interface PushOutcome extends LedgerKey {
  readonly state: 'pending' | 'sent' | 'skipped' | 'failed';
  readonly why: string | null;
  readonly provider: PushKind | null;
  readonly answer: string | null;
  /** Whether the provider was asked. */
  readonly attempted: boolean;
  readonly due_at: number;
  readonly at: number;
}

export interface PushTargets {
  /**
   * What is given takes the place of what the device had of that kind; `address` null takes it away. An address that a device of any tenant had moves
   * here. False when there is no such device, or it is revoked.
   */
  register(
    tenant_id: TenantId,
    device_id: DeviceId,
    targets: readonly { kind: PushKind; address: string | null; keys?: PushKeys | null }[],
    at: number,
  ): Promise<boolean>;
  /** Of one device, or of all that are not revoked. */
  list(tenant_id: TenantId, device_id?: DeviceId): Promise<PushTargetRow[]>;
  /** The provider says that nobody is there. Nothing happens when the device has named an address since. */
  drop(target: Pick<PushTargetRow, 'tenant_id' | 'device_id' | 'kind' | 'registration'>): Promise<boolean>;
}

export interface PushRules {
  /** A rule that asks for nothing is forgotten. False when there is no such device. */
  set(row: PushRuleRow): Promise<boolean>;
  list(tenant_id: TenantId): Promise<PushRuleRow[]>;
  content(tenant_id: TenantId): Promise<PushContent>;
  /** False when there is no such tenant. */
  setContent(tenant_id: TenantId, content: PushContent): Promise<boolean>;
}

export interface PushFrames {
  /** Once per cursor; those whose lane is gone are passed over. */
  note(rows: readonly Omit<PushFrameRow, 'decided'>[]): Promise<void>;
  /** Not decided yet, oldest first. */
  undecided(tenant_id: TenantId): Promise<PushFrameRow[]>;
  get(tenant_id: TenantId, cursors: readonly Cursor[]): Promise<PushFrameRow[]>;
  decided(tenant_id: TenantId, cursors: readonly Cursor[]): Promise<void>;
  /** Tenants with a frame of `before` or earlier that is not decided. */
  overdue(before: number, limit: number): Promise<TenantId[]>;
  /** Frames, ledger and tokens older than that, of any tenant. */
  prune(before: number): Promise<void>;
}

export interface PushLedger {
  /** One decision per device and frame: of several the first stands. Returns those that stand now because of this. */
  decide(rows: readonly PushLedgerRow[]): Promise<LedgerKey[]>;
  /**
   * `pending`, and `sending` ones whose claim has lapsed, become ours until `until`, unless the device has said hello since they were
   * decided, or could not any more: it or its token is revoked, or its tenant suspended. Returns those that did.
   */
  claim(keys: readonly LedgerKey[], now: number, until: number): Promise<Claimed[]>;
  /**
   * What became of claimed ones. `sent` moves the device's `last_pushed_cursor` in the same step, and stands whatever came between;
   * anything else changes only what is `pending` or `sending`.
   */
  record(outcomes: readonly PushOutcome[]): Promise<void>;
  /** Those whose time has come, of any tenant, oldest first. */
  due(now: number, limit: number): Promise<PushLedgerRow[]>;
  /** Those that were collapsed into one that is not sent any more are `pending` again. */
  release(key: LedgerKey, now: number): Promise<void>;
  /**
   * The device is here: what is `pending` for it is skipped. `under_way`: how many are `sending`.
   */
  fence(tenant_id: TenantId, device_id: DeviceId, at: number): Promise<{ under_way: number; last_pushed_cursor: Cursor }>;
  of(tenant_id: TenantId, cursors: readonly Cursor[]): Promise<PushLedgerRow[]>;
  /** What is decided of these frames. */
  keysOf(tenant_id: TenantId, cursors: readonly Cursor[]): Promise<LedgerKey[]>;
  /** The newest of a device, at `cursor` or before. */
  explain(tenant_id: TenantId, device_id: DeviceId, options: { cursor?: Cursor; limit: number }): Promise<PushLedgerRow[]>;
  /** Sent and not withdrawn. */
  shown(tenant_id: TenantId): Promise<PushLedgerRow[]>;
  withdrawn(keys: readonly LedgerKey[], at: number): Promise<void>;
}

/** Tenants in which something that may be shown has gone stale: whoever is to take it back may be lost, this is not. */
export interface PushStale {
  /** As of `at`, milliseconds; a later mark stands in place of an earlier one. */
  mark(tenant_id: TenantId, at: number): Promise<void>;
  /** Marked at `before` or earlier, oldest first. */
  due(before: number, limit: number): Promise<{ tenant_id: TenantId; at: number }[]>;
  /** Unless it was marked later. */
  clear(tenant_id: TenantId, at: number): Promise<void>;
}

/** From where on a tenant's outbox may hold frames that are worth a push and have no note: whoever appended them may be lost, this is not. */
export interface PushOwed {
  /** As of `at`, milliseconds: frames that come above `cursor`. */
  mark(tenant_id: TenantId, cursor: Cursor, at: number): Promise<void>;
  /** Marked at `before` or earlier, oldest first. */
  due(before: number, limit: number): Promise<{ tenant_id: TenantId; cursor: Cursor; at: number }[]>;
  /** Unless it was marked again later. */
  clear(mark: { tenant_id: TenantId; cursor: Cursor; at: number }): Promise<void>;
}

export interface PushActions {
  add(rows: readonly { tenant_id: TenantId; hash: string; picker_id: PickerId; device_id: DeviceId; expires_at: number }[]): Promise<void>;
  /** What `use` would give, without using it. */
  find(tenant_id: TenantId, hash: string, by: string, now: number): Promise<{ picker_id: PickerId; device_id: DeviceId } | undefined>;
  /** Once: the same `by` may ask again. Undefined when it is unknown, used, or past its time. */
  use(tenant_id: TenantId, hash: string, by: string, now: number): Promise<{ picker_id: PickerId; device_id: DeviceId } | undefined>;
}
