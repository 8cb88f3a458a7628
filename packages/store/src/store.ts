import type {
  AgentId,
  ChatId,
  ConnectionId,
  Cursor,
  DeviceId,
  EdgeId,
  InstallId,
  Lane,
  MediaId,
  MessageId,
  ObjectId,
  PickerId,
  Quotas,
  TenantId,
  TokenId,
  TurnId,
} from '@iris/protocol';
import type { PushActions, PushFrames, PushLedger, PushOwed, PushRules, PushStale, PushTargets } from './push.js';
import type {
  AgentBackendRow,
  AgentFrameRow,
  AgentRow,
  AuditRow,
  ChannelRow,
  DeviceRow,
  MediaRow,
  MessageRow,
  PairingRow,
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
  readonly pairings: Pairings;
  readonly devices: Devices;
  readonly channels: Channels;
  readonly messages: Messages;
  readonly turns: Turns;
  readonly agents: Agents;
  readonly agentBackends: AgentBackends;
  readonly agentFrames: AgentFrames;
  readonly pickers: Pickers;
  readonly reads: Reads;
  readonly receipts: Receipts;
  readonly media: MediaRows;
  readonly pushTargets: PushTargets;
  readonly pushRules: PushRules;
  readonly pushFrames: PushFrames;
  readonly pushLedger: PushLedger;
  readonly pushActions: PushActions;
  readonly pushStale: PushStale;
  readonly pushOwed: PushOwed;
  readonly audit: Audit;
  readonly usage: Usage;
  readonly keys: Keys;
  /** Whether it can be written to now (a read-only replica cannot). */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export interface Tenants {
  /** With its default channel `android:default` and one default agent, both named `Default`. Rejects when it stands already. */
  create(row: { tenant_id: TenantId; name: string; agent_id: AgentId; at: number }): Promise<void>;
  get(tenant_id: TenantId): Promise<TenantRow | undefined>;
  /** By id. */
  list(page: { after?: TenantId; limit: number }): Promise<TenantRow[]>;
  /** Merges. Undefined when there is no such tenant. */
  setQuotas(tenant_id: TenantId, quotas: Partial<Quotas>): Promise<TenantRow | undefined>;
  /** `(from, to]` is the caller's alone, whoever else asks; everything given before is at or below `from`. */
  reserveCursors(tenant_id: TenantId, count: number): Promise<{ from: Cursor; to: Cursor } | undefined>;
  /** A suspended tenant's tokens open nothing. Undefined when there is no such tenant. */
  setState(tenant_id: TenantId, state: TenantRow['state']): Promise<TenantRow | undefined>;
  /** With everything that is the tenant's but the audit. */
  remove(tenant_id: TenantId): Promise<boolean>;
}

export interface Tokens {
  /** Rejects when its id or hash stands already, or there is no such tenant. */
  create(row: NewToken): Promise<void>;
  /** By hash alone would be enough; the tenant keeps the lookup inside one partition. Revoked ones too. */
  find(tenant_id: TenantId, hash: string): Promise<TokenRow | undefined>;
  /** Revoked ones too. */
  get(tenant_id: TenantId, token_id: TokenId): Promise<TokenRow | undefined>;
  list(tenant_id: TenantId): Promise<TokenRow[]>;
  /** False when there is no such token. One that was revoked before keeps its time, and is true again: a retry may go on from here. */
  revoke(tenant_id: TenantId, token_id: TokenId, at: number): Promise<boolean>;
  /** It opens nothing from `at` on; an earlier end stays. False when there is no such token. */
  expire(tenant_id: TenantId, token_id: TokenId, at: number): Promise<boolean>;
}

/** What is not said: no role, no label, no end. */
export type NewToken = Omit<TokenRow, 'revoked_at' | 'role' | 'label' | 'expires_at'> &
  Partial<Pick<TokenRow, 'role' | 'label' | 'expires_at'>>;

/** Codes that an app exchanges for a token of its own device, once. */
export interface Pairings {
  /** Forgets the tenant's codes that were used or have run out. Rejects when there is no such tenant, or the code stands already. */
  create(row: Omit<PairingRow, 'used_by'>): Promise<void>;
  /** Whoever comes first has it. Undefined when there is no such code, of any tenant, or it was used, or has run out. */
  use(code_hash: string, device_id: DeviceId, now: number): Promise<PairingRow | undefined>;
}

export interface Devices {
  /**
   * Make or refresh the device of a `hello`. `over_quota` when it is new and there are `max` already that are not revoked;
   * `revoked` when it was revoked.
   */
  hello(row: {
    tenant_id: TenantId;
    device_id: DeviceId;
    name: string;
    caps: Record<string, unknown>;
    token_id: TokenId;
    at: number;
    max: number;
  }): Promise<{ row: DeviceRow; created: boolean } | 'over_quota' | 'revoked'>;
  get(tenant_id: TenantId, device_id: DeviceId): Promise<DeviceRow | undefined>;
  list(tenant_id: TenantId): Promise<DeviceRow[]>;
  /** Watermarks only rise, and so does `last_seen_at`. Unknown devices are passed over. */
  confirm(marks: readonly { tenant_id: TenantId; device_id: DeviceId; cursor: Cursor; at: number }[]): Promise<void>;
  /** Null: what the app calls itself. Undefined when there is no such device. */
  setLabel(tenant_id: TenantId, device_id: DeviceId, label: string | null): Promise<DeviceRow | undefined>;
  /** As {@link Tokens.revoke}. */
  revoke(tenant_id: TenantId, device_id: DeviceId, at: number): Promise<boolean>;
}

export interface Channels {
  /** Channels and threads, oldest first. */
  list(tenant_id: TenantId): Promise<ChannelRow[]>;
  /**
   * A new channel (`chat_id` absent) or a thread in `chat_id`; ids `android:chan_<n>`, `t_<n>` are given here and never again.
   * The same `idempotency_key` returns the first. `no_channel`; `over_quota` when the tenant has `max` channels and threads, the
   * default one counted. A thread has its channel's agent.
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
  /**
   * Undefined when there is no such lane; `conflict` when `only_if` is given and the name is another, or a person gave it. With
   * `only_if`, a lane that has the new name already is returned as it is: that is a retry.
   */
  rename(
    tenant_id: TenantId,
    lane: Lane,
    name: string,
    options: { auto: boolean; only_if?: string },
  ): Promise<ChannelRow | 'conflict' | undefined>;
  /** Exactly one channel is the default, before and after: it alone has `is_default` and kind `default`. False when there is no such channel. */
  setDefault(tenant_id: TenantId, chat_id: ChatId): Promise<boolean>;
  /** The agent that serves the channel and its threads; null: the tenant's default one. Undefined when there is no such channel, or no such agent. */
  bind(tenant_id: TenantId, chat_id: ChatId, agent_id: AgentId | null): Promise<ChannelRow | undefined>;
  /**
   * With threads, messages, turns, pickers and read state. `default` when it is the default channel. Returns what went:
   * `media_ids` are those that no message left names, and are `unused` from then on, `running` the turns that were sent or running.
   */
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

export interface MessagePlace extends Lane {
  readonly cursor: Cursor | null;
  /** What the agent that said it calls it. */
  readonly own_id: string | null;
}

/** A message that a search found. */
export interface SearchHit extends Pick<MessageRow, 'message_id' | 'chat_id' | 'thread_id' | 'role' | 'ts'> {
  /** At most 160 code points of its text around the match; no character is cut. */
  readonly snippet: string;
}

export interface Messages {
  /**
   * Group commit: every row with its turn, in order, in one statement. A row whose `idempotency_key` or `message_id` stands
   * already is not inserted (nor its turn): `row` is then the first one. `no_lane`: its channel is gone; `deleted`: a message of
   * this id, or with this key, was deleted. One row's refusal does not touch the others. U+0000 and lone surrogates become U+FFFD,
   * `tokens` that are no whole number null.
   */
  insert(
    rows: readonly { message: MessageRow; turn?: NewTurn }[],
  ): Promise<({ row: MessageRow; inserted: boolean } | 'no_lane' | 'deleted')[]>;
  /**
   * A final that replaces an interrupted one: same id, new text and all that belongs to it; lane, place, keys, device and turn stay.
   * Undefined when deleted or unknown.
   */
  replace(row: MessageRow): Promise<MessageRow | undefined>;
  /** Gives each its place, also when it was deleted meanwhile. A place once given stays; unknown ids are passed over. */
  setCursors(marks: readonly { tenant_id: TenantId; message_id: MessageId; cursor: Cursor }[]): Promise<void>;
  get(tenant_id: TenantId, message_id: MessageId): Promise<MessageRow | undefined>;
  /** Those of them that stand, in any order. */
  standing(tenant_id: TenantId, message_ids: readonly MessageId[]): Promise<MessageRow[]>;
  /** Where each stands; those that were deleted or never were are absent. */
  places(tenant_id: TenantId, message_ids: readonly MessageId[]): Promise<Map<MessageId, MessagePlace>>;
  /**
   * The newest `limit` messages of the lane before `before` (exclusive, by its place, also when deleted), oldest first.
   * Order is by cursor; owed ones last. `unknown_before` when the tenant's lane never had it.
   */
  page(
    tenant_id: TenantId,
    lane: Lane,
    options: { before?: MessageId; limit: number },
  ): Promise<{ rows: MessageRow[]; has_more: boolean } | 'unknown_before'>;
  /**
   * Messages with every word and "quoted phrase" of the text, also as part of a word, and none of the -excluded ones, without regard to
   * case and accents, in any script. Any text is a query; one that asks for nothing, or only excludes, finds nothing.
   * Best first: all terms in a row, all as whole words, all at beginnings of words, anywhere; the newer first among equals. Where more
   * than `limit` of the newest 1,000 messages match best, older ones are not looked at. `has_more` is exact, unless the server had no time for
   * older ones: then it says that there are more.
   */
  search(tenant_id: TenantId, query: { text: string; lane?: Lane; limit: number }): Promise<{ rows: SearchHit[]; has_more: boolean }>;
  /**
   * Leaves id and place, nothing else. Also remembers ids that were never stored (a running one), with the lane's end as their place,
   * so that no late insert brings them back. Messages of another lane are left alone. `removed`: those that stood until now;
   * `media_ids`: those that no message left names; they are `unused` from then on.
   */
  remove(
    tenant_id: TenantId,
    lane: Lane,
    message_ids: readonly MessageId[],
    at: number,
  ): Promise<{ removed: MessageId[]; media_ids: string[] }>;
  /** Whether each was deleted. */
  deleted(tenant_id: TenantId, message_ids: readonly MessageId[]): Promise<Set<MessageId>>;
  /** Of the tenant's `limit` oldest messages that have a place, those older than `before_ts` whose turn, if they have one, has ended. */
  aged(tenant_id: TenantId, options: { before_ts: number; limit: number }): Promise<(Lane & { message_id: MessageId })[]>;
  /** Of any tenant, without a cursor, older than `before_ts`, oldest first. */
  owed(options: { before_ts: number; limit: number }): Promise<MessageRow[]>;
}

export interface Turns {
  /** Queue a turn for a message that stands already (a steer that was not taken, a retry). Idempotent by `turn_id`. Rejects when the lane is gone. */
  queue(tenant_id: TenantId, lane: Lane, turn: NewTurn): Promise<TurnRow>;
  get(tenant_id: TenantId, turn_id: TurnId): Promise<TurnRow | undefined>;
  /**
   * The lane's first queued chat turn becomes `sent`, if no chat turn of the lane is sent or running and fewer than
   * `max_running` are in the tenant. A queued command becomes `sent` whatever runs, and before any chat turn. Undefined when
   * nothing may start. A turn's first attempt is 1.
   * @param options.boot_id the agent's process that it is for, when there is one
   */
  startNext(
    tenant_id: TenantId,
    lane: Lane,
    options: { agent_id: AgentId; max_running: number; boot_id?: string },
  ): Promise<TurnRow | undefined>;
  /** `running` now. `already`: it was; `ended`: too late. Undefined when it was never sent. */
  accept(
    tenant_id: TenantId,
    turn_id: TurnId,
    accepted: { boot_id: string; at: number },
  ): Promise<'accepted' | 'already' | 'ended' | undefined>;
  /** Sent but not accepted, to be sent again, to this process of the agent: attempt + 1. */
  retry(tenant_id: TenantId, turn_id: TurnId, boot_id: string | null): Promise<TurnRow | undefined>;
  /** Sent but not accepted, and to be offered to another agent: queued again, in its place, attempt + 1. Undefined when it is not `sent`. */
  requeue(tenant_id: TenantId, turn_id: TurnId): Promise<TurnRow | undefined>;
  /** Nothing happens when it has ended. */
  requestStop(tenant_id: TenantId, turn_id: TurnId): Promise<void>;
  /** Ends it, also a queued one; undefined when it had ended (someone else won) or never was. */
  end(tenant_id: TenantId, turn_id: TurnId, ended: { outcome: NonNullable<TurnRow['outcome']>; at: number }): Promise<TurnRow | undefined>;
  /** Sent and running ones. */
  open(tenant_id: TenantId): Promise<TurnRow[]>;
  /** Of all tenants, those that have sent or running ones. */
  openTenants(): Promise<TenantId[]>;
  /** Lanes with queued turns, longest waiting first. */
  waitingLanes(tenant_id: TenantId): Promise<Lane[]>;
  /** How many are queued. */
  waiting(tenant_id: TenantId, lane: Lane): Promise<number>;
}

export interface Agents {
  /** A new default agent takes the place of the old one. Rejects when it stands already, or there is no such tenant. */
  create(row: { tenant_id: TenantId; agent_id: AgentId; name: string; is_default: boolean; at: number }): Promise<void>;
  get(tenant_id: TenantId, agent_id: AgentId): Promise<AgentRow | undefined>;
  list(tenant_id: TenantId): Promise<AgentRow[]>;
  /** Exactly one agent is the default, before and after. Undefined when there is no such agent. */
  change(tenant_id: TenantId, agent_id: AgentId, change: { name?: string; is_default?: true }): Promise<AgentRow | undefined>;
  /**
   * With its backend and what it had not acked; its tokens are revoked, channels that were bound to it are the default agent's. `default` when
   * it is the default agent. Turns that it holds stay. Returns its tokens.
   */
  remove(tenant_id: TenantId, agent_id: AgentId, at: number): Promise<{ token_ids: TokenId[] } | 'default' | undefined>;
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
  /** The link of this epoch is gone; nothing happens when a newer one stands, or it was gone before. */
  detach(tenant_id: TenantId, agent_id: AgentId, epoch: number, at: number): Promise<boolean>;
  /** Links that are there, in one trip; only of the current epoch. */
  seen(links: readonly { tenant_id: TenantId; agent_id: AgentId; epoch: number }[], at: number): Promise<void>;
  /** `in_seq` rises to `seq`, for this install only. */
  processed(tenant_id: TenantId, agent_id: AgentId, install_id: InstallId, seq: number): Promise<void>;
  setCommands(tenant_id: TenantId, agent_id: AgentId, commands: readonly Record<string, unknown>[]): Promise<void>;
}

export interface AgentBackends {
  /** Takes the place of what stood. False when there is no such agent. */
  set(row: AgentBackendRow): Promise<boolean>;
  list(tenant_id: TenantId): Promise<AgentBackendRow[]>;
  /** False when there was none. */
  remove(tenant_id: TenantId, agent_id: AgentId): Promise<boolean>;
  /** Of all tenants, those that may run: their tenant is active and their token opens it. By tenant, then agent. */
  running(page: { after?: Pick<AgentBackendRow, 'tenant_id' | 'agent_id'>; limit: number; now: number }): Promise<AgentBackendRow[]>;
}

export interface AgentFrames {
  /**
   * Gives each the agent's next `out_seq`, in order. Kept until acked. `key` makes it idempotent, while the frame stands and for 24 h at least: a
   * frame that stands comes back as it is, one that was acked with `seq` 0 (there is nothing to send). Nothing, for an agent
   * that there is no more.
   */
  append(
    tenant_id: TenantId,
    agent_id: AgentId,
    frames: readonly { frame: Record<string, unknown>; key?: string }[],
  ): Promise<AgentFrameRow[]>;
  after(tenant_id: TenantId, agent_id: AgentId, seq: number): Promise<AgentFrameRow[]>;
  ack(tenant_id: TenantId, agent_id: AgentId, seq: number): Promise<void>;
  /**
   * Take back what is not to be sent again: the `turn.start` of a turn that ended. Its number stays, with {@link voidFrame} in it, since
   * the link's `seq` rises by one.
   */
  withdraw(tenant_id: TenantId, agent_id: AgentId, turn_id: TurnId): Promise<void>;
}

export interface Pickers {
  /** Idempotent by `picker_id`: false when it stood already, or its lane is gone. */
  open(row: PickerRow): Promise<boolean>;
  get(tenant_id: TenantId, picker_id: PickerId): Promise<PickerRow | undefined>;
  /** Those of them that there are, in any order. */
  these(tenant_id: TenantId, picker_ids: readonly PickerId[]): Promise<PickerRow[]>;
  /** Open ones, of one turn or of all, oldest first. */
  list(tenant_id: TenantId, turn_id?: TurnId): Promise<PickerRow[]>;
  /** Only an open one can be closed, once. `won` again for the same `answered_by`. */
  close(
    tenant_id: TenantId,
    picker_id: PickerId,
    closed: { state: 'answered' | 'closed'; value: PickerRow['value']; answered_by: string | null },
  ): Promise<'won' | 'lost' | undefined>;
  /** Open ones whose `expires_at` has come, of any tenant, the longest expired first; a further page begins after the last row of the one before. */
  expired(now: number, page: { limit: number; after?: PickerRow }): Promise<PickerRow[]>;
}

export interface Reads {
  /** Moves forward only: false when the lane was read further already by this device, or is gone. The same place again is true: a retry. */
  advance(row: ReadStateRow): Promise<boolean>;
  list(tenant_id: TenantId): Promise<ReadStateRow[]>;
}

/** `read.receipt`s that are owed to a device until its next connection. */
export interface Receipts {
  /** Once per message. */
  owe(row: {
    tenant_id: TenantId;
    device_id: DeviceId;
    chat_id: ChatId;
    thread_id: Lane['thread_id'];
    message_id: MessageId;
  }): Promise<void>;
  /** Returns them, oldest first, and forgets them. */
  take(tenant_id: TenantId, device_id: DeviceId): Promise<{ chat_id: ChatId; thread_id: Lane['thread_id']; message_id: MessageId }[]>;
}

/** Bytes that are in the media store. */
export interface Content {
  readonly object_id: ObjectId;
  readonly size: number;
  /** Lower-case hexadecimal. */
  readonly sha256: string;
}

export interface MediaRows {
  /**
   * A file of the declared size is on its way: a row of state `uploading`. One that the same device had on its way under the same name
   * goes. The same `media_id` again changes nothing. `full`: what is stored and on its way would be more than `stored_bytes`; `day_full`:
   * what was begun on this day would be more than `day_bytes`.
   */
  begin(row: MediaRow, limits: { stored_bytes: number; day_bytes: number }): Promise<'begun' | 'full' | 'day_full' | 'no_tenant'>;
  /**
   * The bytes of a file that is `uploading` begin anew, in another object: what the former holds is to be removed, and whoever still writes
   * to it can't complete the file any more. False when the file is not on its way.
   */
  restart(tenant_id: TenantId, media_id: string, object_id: ObjectId): Promise<boolean>;
  /**
   * The bytes are there: `uploading` becomes `uploaded`. When the tenant has the same content already, the row names that and the new
   * object is to be removed. The same again is the same; undefined when the row is gone, or its bytes are on their way to another object.
   */
  complete(tenant_id: TenantId, media_id: string, content: Content): Promise<MediaRow | undefined>;
  /** A file that is whole, such as a preview. False when it stood already, or there is no such tenant. */
  insert(row: MediaRow, content: Content): Promise<boolean>;
  get(tenant_id: TenantId, media_id: string): Promise<MediaRow | undefined>;
  /** The newest that the device uploaded, or is uploading, under this name. */
  byRef(tenant_id: TenantId, device_id: DeviceId, media_ref: string): Promise<MediaRow | undefined>;
  /**
   * What it is, by its content; `processed` from now on. With `content`, bytes that take the place of the old. Undefined when there is no
   * such file, it is on its way still, or `unused`.
   */
  describe(
    tenant_id: TenantId,
    media_id: string,
    what: Pick<MediaRow, 'kind' | 'mime' | 'details'>,
    content?: Content,
  ): Promise<MediaRow | undefined>;
  /** All or none: false when one is not `uploaded`. True again for the same `by`, which a retry gives again. */
  attach(tenant_id: TenantId, media_ids: readonly string[], by?: string): Promise<boolean>;
  /** An agent shows them, as often as it likes. False, and nothing changes, when one is not there. */
  show(tenant_id: TenantId, media_ids: readonly string[], as: 'offered' | 'attached'): Promise<boolean>;
  /** Unless a message names them. Objects that no row names any more are to be removed. */
  remove(tenant_id: TenantId, media_ids: readonly string[]): Promise<void>;
  /** Of any tenant, oldest first: `unused` ones, those begun or uploaded before `loose_before` and never attached, and those offered before `offered_before`. */
  stale(options: { loose_before: number; offered_before: number; limit: number }): Promise<{ tenant_id: TenantId; media_id: MediaId }[]>;
  /** Objects of any tenant that are to be removed. */
  removing(limit: number): Promise<{ tenant_id: TenantId; object_id: ObjectId }[]>;
  /** Its bytes are gone. */
  removed(tenant_id: TenantId, object_id: ObjectId): Promise<void>;
  /** Bytes that count against `stored_bytes`: stored once each, and on their way. */
  storedBytes(tenant_id: TenantId): Promise<number>;
}

/** By which a repeat is known for one, and what else is kept only so that nothing happens twice. */
export interface Keys {
  /**
   * Of one tenant, what was kept before `before` and no repeat asks for any more goes: keys of agents’ frames that are acked, keys by which lanes were made,
   * keys of deleted messages, and pickers that are closed and whose time is over. Lanes, and the ids and places of deleted messages, stay. At
   * most `limit` of each kind; `more` when one of them had as many. What was done after `before` is as it was.
   */
  expire(tenant_id: TenantId, options: { before: number; limit: number }): Promise<{ expired: number; more: boolean }>;
}

export interface Audit {
  write(row: AuditRow): Promise<void>;
  /** Newest first. */
  list(tenant_id: TenantId | null, limit: number): Promise<AuditRow[]>;
}

export interface Usage {
  /** Days of UTC, `YYYY-MM-DD`, from the first to the last named, oldest first; days without anything are absent. Of what was accepted, whatever became of it since. */
  days(tenant_id: TenantId, from: string, to: string): Promise<UsageDay[]>;
}
export interface UsageDay {
  readonly day: string;
  readonly user_messages: number;
  readonly agent_messages: number;
  readonly turns: number;
  readonly media_files: number;
  readonly media_bytes: number;
}
