import type {
  AgentId,
  ChatId,
  ConnectionId,
  Cursor,
  DeviceId,
  EdgeId,
  InstallId,
  Lane,
  MessageId,
  PickerId,
  Quotas,
  TenantId,
  TokenId,
  TurnId,
} from '@iris/protocol';
import type {
  AgentFrameRow,
  AgentRow,
  AuditRow,
  ChannelRow,
  DeviceRow,
  MediaRow,
  MessageRow,
  PickerRow,
  ReadStateRow,
  TenantRow,
  TokenRow,
  TurnRow,
} from './rows.js';

/**
 * The truth. Rows in, rows out, no rules; each call is one atomic step, committed when it resolves.
 * The tenant is the first argument of everything that is a tenant's. Adapters: Postgres by Prisma, and memory for tests.
 */
export interface Store {
  readonly tenants: Tenants;
  readonly tokens: Tokens;
  readonly devices: Devices;
  readonly channels: Channels;
  readonly messages: Messages;
  readonly turns: Turns;
  readonly agents: Agents;
  readonly agentFrames: AgentFrames;
  readonly pickers: Pickers;
  readonly reads: Reads;
  readonly receipts: Receipts;
  readonly media: MediaRows;
  readonly audit: Audit;
  /** Whether it can be written to now (a read-only replica cannot). */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export interface Tenants {
  /** With its default channel `android:default` and one default agent. */
  create(row: { tenant_id: TenantId; name: string; agent_id: AgentId; at: number }): Promise<void>;
  get(tenant_id: TenantId): Promise<TenantRow | undefined>;
  list(page: { after?: TenantId; limit: number }): Promise<TenantRow[]>;
  /** Merges. Undefined when there is no such tenant. */
  setQuotas(tenant_id: TenantId, quotas: Partial<Quotas>): Promise<TenantRow | undefined>;
  /** `(from, to]` is the caller's alone, whoever else asks; everything given before is at or below `from`. */
  reserveCursors(tenant_id: TenantId, count: number): Promise<{ from: Cursor; to: Cursor } | undefined>;
  remove(tenant_id: TenantId): Promise<boolean>;
}

export interface Tokens {
  create(row: Omit<TokenRow, 'revoked_at'>): Promise<void>;
  /** By hash alone would be enough; the tenant keeps the lookup inside one partition. Revoked ones too. */
  find(tenant_id: TenantId, hash: string): Promise<TokenRow | undefined>;
  list(tenant_id: TenantId): Promise<TokenRow[]>;
  revoke(tenant_id: TenantId, token_id: TokenId, at: number): Promise<boolean>;
}

export interface Devices {
  /**
   * Make or refresh the device of a `hello`. `over_quota` when it is new and there are `max` already; `revoked` when it was
   * revoked. A push token that another device of any tenant had moves here.
   */
  hello(row: {
    tenant_id: TenantId;
    device_id: DeviceId;
    name: string;
    caps: Record<string, unknown>;
    token_id: TokenId;
    fcm_token: string | null;
    ntfy_topic: string | null;
    at: number;
    max: number;
  }): Promise<{ row: DeviceRow; created: boolean } | 'over_quota' | 'revoked'>;
  get(tenant_id: TenantId, device_id: DeviceId): Promise<DeviceRow | undefined>;
  list(tenant_id: TenantId): Promise<DeviceRow[]>;
  setPush(tenant_id: TenantId, device_id: DeviceId, push: { fcm_token?: string | null; ntfy_topic?: string | null }): Promise<boolean>;
  /** Watermarks only rise. */
  confirm(marks: readonly { tenant_id: TenantId; device_id: DeviceId; cursor: Cursor; at: number }[]): Promise<void>;
  revoke(tenant_id: TenantId, device_id: DeviceId, at: number): Promise<boolean>;
}

export interface Channels {
  /** Channels and threads, oldest first. */
  list(tenant_id: TenantId): Promise<ChannelRow[]>;
  /**
   * A new channel (`chat_id` absent) or a thread in `chat_id`; ids `android:chan_<n>`, `t_<n>` are given here and never again.
   * The same `idempotency_key` returns the first. `no_channel`, `over_quota`.
   */
  create(row: {
    tenant_id: TenantId;
    chat_id?: ChatId;
    name: string;
    auto: boolean;
    idempotency_key: string;
    max: number;
    at: number;
  }): Promise<{ row: ChannelRow; created: boolean } | 'no_channel' | 'over_quota'>;
  /** Undefined when there is no such lane; `conflict` when `only_if` is given and the name is another, or a person gave it. */
  rename(
    tenant_id: TenantId,
    lane: Lane,
    name: string,
    options: { auto: boolean; only_if?: string },
  ): Promise<ChannelRow | 'conflict' | undefined>;
  /** Exactly one channel is the default, before and after. */
  setDefault(tenant_id: TenantId, chat_id: ChatId): Promise<boolean>;
  /** With threads, messages, turns, pickers and read state. `default` when it is the default channel. Returns what went. */
  remove(tenant_id: TenantId, lane: Lane): Promise<{ lanes: Lane[]; media_ids: string[]; running: TurnRow[] } | 'default' | undefined>;
}

export type NewTurn = Omit<
  TurnRow,
  | 'tenant_id'
  | 'chat_id'
  | 'thread_id'
  | 'state'
  | 'outcome'
  | 'attempt'
  | 'boot_id'
  | 'stop_requested'
  | 'position'
  | 'accepted_at'
  | 'ended_at'
>;

export interface Messages {
  /**
   * Group commit: every row with its turn, in order, in one statement. A row whose `idempotency_key` or `message_id` stands
   * already is not inserted (nor its turn): `row` is then the first one. `no_lane`: its channel is gone; `deleted`: a message of
   * this id was deleted.
   */
  insert(
    rows: readonly { message: MessageRow; turn?: NewTurn }[],
  ): Promise<({ row: MessageRow; inserted: boolean } | 'no_lane' | 'deleted')[]>;
  /** A final that replaces an interrupted one: same id, new text. Undefined when deleted or unknown. */
  replace(row: MessageRow): Promise<MessageRow | undefined>;
  setCursors(marks: readonly { tenant_id: TenantId; message_id: MessageId; cursor: Cursor }[]): Promise<void>;
  get(tenant_id: TenantId, message_id: MessageId): Promise<MessageRow | undefined>;
  byIdempotencyKey(tenant_id: TenantId, key: string): Promise<MessageRow | undefined>;
  /**
   * The newest `limit` messages of the lane before `before` (exclusive, by its place, also when deleted), oldest first.
   * Order is by cursor; owed ones last. `unknown_before` when the tenant's lane never had it.
   */
  page(
    tenant_id: TenantId,
    lane: Lane,
    options: { before?: MessageId; limit: number },
  ): Promise<{ rows: MessageRow[]; has_more: boolean } | 'unknown_before'>;
  search(
    tenant_id: TenantId,
    query: { text: string; lane?: Lane; limit: number },
  ): Promise<{ rows: (MessageRow & { snippet: string })[]; has_more: boolean }>;
  /** Leaves id and place, nothing else. Also remembers ids that were never stored (a running one), so that no late insert brings them back. */
  remove(
    tenant_id: TenantId,
    lane: Lane,
    message_ids: readonly MessageId[],
    at: number,
  ): Promise<{ removed: MessageId[]; media_ids: string[] }>;
  /** Whether each was deleted. */
  deleted(tenant_id: TenantId, message_ids: readonly MessageId[]): Promise<Set<MessageId>>;
  /** Of any tenant, without a cursor, older than `before_ts`. */
  owed(options: { before_ts: number; limit: number }): Promise<MessageRow[]>;
}

export interface Turns {
  /** Queue a turn for a message that stands already (a steer that was not taken, a retry). Idempotent by `turn_id`. */
  queue(tenant_id: TenantId, lane: Lane, turn: NewTurn): Promise<TurnRow>;
  get(tenant_id: TenantId, turn_id: TurnId): Promise<TurnRow | undefined>;
  /**
   * The lane's first queued chat turn becomes `sent`, if no chat turn of the lane is sent or running and fewer than
   * `max_running` are in the tenant. A queued command becomes `sent` whatever runs. Undefined when nothing may start.
   */
  startNext(tenant_id: TenantId, lane: Lane, options: { agent_id: AgentId; max_running: number }): Promise<TurnRow | undefined>;
  /** `running` now. `already`: it was; `ended`: too late. */
  accept(
    tenant_id: TenantId,
    turn_id: TurnId,
    accepted: { boot_id: string; at: number },
  ): Promise<'accepted' | 'already' | 'ended' | undefined>;
  /** Sent but not accepted, to be sent again: attempt + 1. */
  retry(tenant_id: TenantId, turn_id: TurnId): Promise<TurnRow | undefined>;
  requestStop(tenant_id: TenantId, turn_id: TurnId): Promise<void>;
  /** Ends it; undefined when it had ended (someone else won) or never was. */
  end(tenant_id: TenantId, turn_id: TurnId, ended: { outcome: NonNullable<TurnRow['outcome']>; at: number }): Promise<TurnRow | undefined>;
  /** Sent and running ones, of one tenant or of all. */
  open(tenant_id?: TenantId): Promise<TurnRow[]>;
  /** Lanes with queued turns. */
  waitingLanes(tenant_id: TenantId): Promise<Lane[]>;
  waiting(tenant_id: TenantId, lane: Lane): Promise<number>;
}

export interface Agents {
  create(row: { tenant_id: TenantId; agent_id: AgentId; name: string; is_default: boolean; at: number }): Promise<void>;
  get(tenant_id: TenantId, agent_id: AgentId): Promise<AgentRow | undefined>;
  list(tenant_id: TenantId): Promise<AgentRow[]>;
  /** A link says hello: the next epoch. A new `install_id` starts both sequences at 0 and renumbers what is unacked from 1. */
  attach(
    tenant_id: TenantId,
    link: {
      agent_id: AgentId;
      install_id: InstallId;
      boot_id: string;
      edge_id: EdgeId;
      connection_id: ConnectionId;
      caps: Record<string, unknown>;
      at: number;
    },
  ): Promise<{ row: AgentRow; previous: AgentRow } | undefined>;
  /** The link of this epoch is gone; nothing happens when a newer one stands. */
  detach(tenant_id: TenantId, agent_id: AgentId, epoch: number, at: number): Promise<boolean>;
  /** Links that are there, in one trip; only of the current epoch. */
  seen(links: readonly { tenant_id: TenantId; agent_id: AgentId; epoch: number }[], at: number): Promise<void>;
  /** `in_seq` rises to `seq`, for this install only. */
  processed(tenant_id: TenantId, agent_id: AgentId, install_id: InstallId, seq: number): Promise<void>;
  setCommands(tenant_id: TenantId, agent_id: AgentId, commands: readonly Record<string, unknown>[]): Promise<void>;
}

export interface AgentFrames {
  /** Gives each the agent's next `out_seq`, in order. Kept until acked. `key` makes it idempotent. */
  append(
    tenant_id: TenantId,
    agent_id: AgentId,
    frames: readonly { frame: Record<string, unknown>; key?: string }[],
  ): Promise<AgentFrameRow[]>;
  after(tenant_id: TenantId, agent_id: AgentId, seq: number): Promise<AgentFrameRow[]>;
  ack(tenant_id: TenantId, agent_id: AgentId, seq: number): Promise<void>;
  /** Take back what is not to be sent again (a turn.start of a turn that ended). */
  withdraw(tenant_id: TenantId, agent_id: AgentId, turn_id: TurnId): Promise<void>;
}

export interface Pickers {
  /** Idempotent by `picker_id`: false when it stood already. */
  open(row: PickerRow): Promise<boolean>;
  get(tenant_id: TenantId, picker_id: PickerId): Promise<PickerRow | undefined>;
  list(tenant_id: TenantId, turn_id?: TurnId): Promise<PickerRow[]>;
  /** Only an open one can be closed, once. `won` again for the same `answered_by`. */
  close(
    tenant_id: TenantId,
    picker_id: PickerId,
    closed: { state: 'answered' | 'closed'; value: PickerRow['value']; answered_by: string | null },
  ): Promise<'won' | 'lost' | undefined>;
  /** Open ones past `expires_at`, of any tenant. */
  expired(now: number, limit: number): Promise<PickerRow[]>;
}

export interface Reads {
  /** Moves forward only: false when the lane was read further already by this device. */
  advance(row: ReadStateRow): Promise<boolean>;
  list(tenant_id: TenantId): Promise<ReadStateRow[]>;
}

/** `read.receipt`s that are owed to a device until its next connection. */
export interface Receipts {
  owe(row: {
    tenant_id: TenantId;
    device_id: DeviceId;
    chat_id: ChatId;
    thread_id: Lane['thread_id'];
    message_id: MessageId;
  }): Promise<void>;
  /** Returns them and forgets them. */
  take(tenant_id: TenantId, device_id: DeviceId): Promise<{ chat_id: ChatId; thread_id: Lane['thread_id']; message_id: MessageId }[]>;
}

export interface MediaRows {
  insert(row: MediaRow): Promise<boolean>;
  get(tenant_id: TenantId, media_id: string): Promise<MediaRow | undefined>;
  byRef(tenant_id: TenantId, device_id: DeviceId, media_ref: string): Promise<MediaRow | undefined>;
  setDetails(tenant_id: TenantId, media_id: string, details: Record<string, unknown>, mime?: string): Promise<boolean>;
  attach(tenant_id: TenantId, media_ids: readonly string[]): Promise<boolean>;
  remove(tenant_id: TenantId, media_ids: readonly string[]): Promise<void>;
}

export interface Audit {
  write(row: AuditRow): Promise<void>;
  list(tenant_id: TenantId, limit: number): Promise<AuditRow[]>;
}
