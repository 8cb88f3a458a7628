import type { Outbox } from '@iris/outbox';
import type { AgentId, ConnectionId, DeviceId, Lane, MessageId, PickerId, TenantId, TurnId } from '@iris/protocol';
import { laneKey } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import type { MessageRow, PickerRow, Store, TurnRow } from '@iris/store';

export type BusyReason = 'processing' | 'tool' | 'waiting_input' | 'cron';

export interface RunningMessage {
  readonly message_id: MessageId;
  /** The agent's own name for it. */
  readonly own_id: string;
  readonly role: MessageRow['role'];
}

/** What is going on in an open turn; kept in the outbox's values as `turn:<turn_id>`. */
export interface TurnState extends Lane {
  readonly turn_id: TurnId;
  readonly agent_id: AgentId;
  readonly kind: TurnRow['kind'];
  /** The message that started it. */
  readonly message_id: MessageId;
  readonly device_id: DeviceId | null;
  readonly connection_id: ConnectionId | null;
  readonly accepted: boolean;
  /** The agent's process that it was offered to, or that goes on with it. */
  readonly boot_id: string | null;
  /** What devices were told; null when they were told nothing, and so are not told the end. */
  readonly reason: BusyReason | null;
  readonly messages: readonly RunningMessage[];
  readonly tools: readonly { readonly index: number; readonly name: string }[];
  /** Texts given to the running turn whose fate the agent has not said. */
  readonly steers: readonly MessageId[];
  /** When a stop was asked for. */
  readonly stop_at: number | null;
  /** Since when a question that it waited for is not to be answered any more; gone with the agent's next word. */
  readonly unanswered_at?: number;
  /** It is being closed: nothing more comes of it, and who joins is not told of it. */
  readonly ended: boolean;
}

/** A running message's text so far; kept as `text:<message_id>`. `rev` rises with each change. */
export interface TextState {
  readonly text: string;
  readonly reasoning: string;
  readonly rev: number;
  /** The `rev` with which each of the two came to be what it is. */
  readonly text_rev?: number;
  readonly reasoning_rev?: number;
  /** Of the link that said it. */
  readonly epoch?: number;
}

/** When a running turn was last heard of, about, and whether an operator was told of its silence; kept as `heard:<turn_id>`. */
export interface Heard {
  readonly at: number;
  readonly told: boolean;
}

/** What is going on in a tenant: a cache of the outbox's values and the store's open turns and pickers. */
export interface Room {
  readonly turns: Map<TurnId, TurnState>;
  readonly texts: Map<MessageId, TextState>;
  /** As the instance before left it. */
  readonly heard: ReadonlyMap<TurnId, Heard>;
  readonly pickers: Map<PickerId, PickerRow>;
  /** Lanes in which an agent is typing, with the end of it. */
  readonly typing: Map<string, { readonly lane: Lane; cancel(): void }>;
}

export interface Rooms {
  /** Loaded when it is not here. */
  of(tenant_id: TenantId): Promise<Room>;
  peek(tenant_id: TenantId): Room | undefined;
  /** It may be behind the truth, or ahead of it: load it again when it is needed. */
  forget(tenant_id: TenantId): void;
  /** Drop what is left here of forgotten ones, as far as it has come to its end. */
  tidy(): void;
  all(): IterableIterator<[TenantId, Room]>;
  /** All that is known here of the tenant, as values; what a new outbox must be told. */
  values(tenant_id: TenantId): Record<string, string>;
}

export const turnKey = (turn_id: TurnId): string => `turn:${turn_id}`;
export const heardKey = (turn_id: TurnId): string => `heard:${turn_id}`;
export const textKey = (message_id: MessageId): string => `text:${message_id}`;

export function createRooms({ store, outbox, clock, log }: { store: Store; outbox: Outbox; clock: Clock; log: Log }): Rooms {
  const loaded = new Map<TenantId, Room>();
  const loading = new Map<TenantId, Promise<Room>>();
  /** Devices were told of it by this instance alone, and nothing but its timer ends it: it outlives what is loaded. */
  const typings = new Map<TenantId, Room['typing']>();
  const typingOf = (tenant_id: TenantId): Room['typing'] => {
    const typing: Room['typing'] = typings.get(tenant_id) ?? new Map();
    typings.set(tenant_id, typing);
    return typing;
  };

  const load = async (tenant_id: TenantId): Promise<Room> => {
    const [values, rows, pickers] = await Promise.all([
      outbox.values(tenant_id),
      store.turns.open(tenant_id),
      store.pickers.list(tenant_id),
    ]);
    const turns = new Map<TurnId, TurnState>();
    const texts = new Map<MessageId, TextState>();
    const heard = new Map<TurnId, Heard>();
    const used = new Set<string>();
    for (const row of rows) {
      used.add(turnKey(row.turn_id)).add(heardKey(row.turn_id));
      const last = parse<Heard>(values.get(heardKey(row.turn_id)), log);
      if (last !== undefined) heard.set(row.turn_id, last);
      const state = parse<TurnState>(values.get(turnKey(row.turn_id)), log) ?? startingState(row);
      // One that was being ended when its instance died is open until the store says otherwise: whoever said it says it again.
      turns.set(row.turn_id, { ...state, ended: false, accepted: row.state === 'running', reason: state.reason ?? untold(row, rows) });
      for (const { message_id } of state.messages) {
        used.add(textKey(message_id));
        texts.set(message_id, parse<TextState>(values.get(textKey(message_id)), log) ?? { text: '', reasoning: '', rev: clock.now() });
      }
    }
    // What an instance left that died between ending a turn and forgetting it.
    const left = [...values.keys()].filter((name) => /^(?:turn|text|heard):/.test(name) && !used.has(name));
    if (left.length > 0) await outbox.put(tenant_id, Object.fromEntries(left.map((name) => [name, null])));
    return { turns, texts, heard, pickers: new Map(pickers.map((row) => [row.picker_id, row])), typing: typingOf(tenant_id) };
  };
  const forget = (tenant_id: TenantId) => {
    loaded.delete(tenant_id);
    loading.delete(tenant_id);
  };
  return {
    async of(tenant_id) {
      const room = loaded.get(tenant_id);
      if (room !== undefined) return room;
      let promise = loading.get(tenant_id);
      if (promise === undefined) {
        promise = load(tenant_id);
        loading.set(tenant_id, promise);
      }
      try {
        const made = await promise;
        if (loading.get(tenant_id) === promise) loaded.set(tenant_id, made);
        return loaded.get(tenant_id) ?? made;
      } finally {
        if (loading.get(tenant_id) === promise) loading.delete(tenant_id);
      }
    },
    peek: (tenant_id) => loaded.get(tenant_id),
    forget,
    tidy() {
      for (const [tenant_id, { size }] of typings)
        if (size === 0 && !loaded.has(tenant_id) && !loading.has(tenant_id)) typings.delete(tenant_id);
    },
    all: () => loaded.entries(),
    values(tenant_id) {
      const room = loaded.get(tenant_id);
      if (room === undefined) return {};
      return Object.fromEntries([
        ...[...room.turns].map(([turn_id, state]) => [turnKey(turn_id), JSON.stringify(state)]),
        ...[...room.texts].map(([message_id, state]) => [textKey(message_id), JSON.stringify(state)]),
      ]);
    },
  };
}

/** Other turns of the lane that devices see at work. */
export const busyIn = (room: Room, state: TurnState): TurnState[] =>
  [...room.turns.values()].filter(
    (other) => other.turn_id !== state.turn_id && !other.ended && other.reason !== null && laneKey(other) === laneKey(state),
  );

/** A turn that was just sent. */
export function startingState(row: TurnRow): TurnState {
  return {
    turn_id: row.turn_id,
    chat_id: row.chat_id,
    thread_id: row.thread_id,
    agent_id: row.agent_id!,
    kind: row.kind,
    message_id: row.message_id,
    device_id: row.device_id,
    connection_id: row.connection_id,
    accepted: row.state === 'running',
    boot_id: row.boot_id,
    reason: null,
    messages: [],
    tools: [],
    steers: [],
    stop_at: null,
    ended: false,
  };
}

/** What devices were told of a running turn whose state was lost with the outbox: that it is busy, unless another one of the lane says so. */
function untold(row: TurnRow, rows: readonly TurnRow[]): BusyReason | null {
  if (row.state !== 'running') return null;
  const beside =
    row.kind === 'command' && rows.some((other) => other.kind === 'chat' && other.state === 'running' && laneKey(other) === laneKey(row));
  return beside ? null : 'processing';
}

function parse<T>(value: string | undefined, log: Log): T | undefined {
  if (value === undefined) return undefined;
  try {
    return JSON.parse(value) as T;
  } catch (error) {
    log.warn('session.value_unreadable', { error });
    return undefined;
  }
}

/** The busy lanes and running messages that a joining device is told, from the outbox's values. */
export function goingOn(
  values: ReadonlyMap<string, string>,
  log: Log,
): { turns: TurnState[]; textOf: (message_id: MessageId) => TextState | undefined } {
  const turns: TurnState[] = [];
  for (const [name, value] of values) {
    if (!name.startsWith('turn:')) continue;
    const state = parse<TurnState>(value, log);
    if (state !== undefined && !state.ended) turns.push(state);
  }
  return { turns, textOf: (message_id) => parse<TextState>(values.get(textKey(message_id)), log) };
}
