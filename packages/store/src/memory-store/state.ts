import type { AgentId, Cursor, DeviceId, Lane, MessageId, ObjectId, PickerId, TenantId, TokenId, TurnId } from '@iris/protocol';
import { laneKey } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
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
} from '../rows.js';
import type { UsageDay } from '../store.js';
import { newPushState, type PushState } from './push-state.js';

/** Place of a message in its lane: by cursor, owed ones last, and among those as they came. */
export interface Place {
  readonly cursor: Cursor | null;
  readonly seq: number;
}

export interface StoredMessage extends Place {
  readonly row: MessageRow;
  readonly folded: string;
}

/** What is left of a deleted message. */
export interface Tombstone extends Place {
  readonly lane: Lane;
  readonly idempotency_key: string | null;
  /** When it was deleted. */
  readonly at: number;
}

export interface AgentState {
  row: AgentRow;
  /** Not acked yet, by rising `seq`. */
  frames: { readonly row: AgentFrameRow; readonly key: string | null }[];
  /** Keys of appended frames, with the time they came. */
  readonly keys: Map<string, number>;
}

export interface TenantState {
  row: TenantRow;
  /** Number of the newest channel or thread; never given again. */
  lastNumber: number;
  readonly tokens: Map<TokenId, TokenRow>;
  readonly pairings: Map<string, PairingRow>;
  readonly devices: Map<DeviceId, DeviceRow>;
  /** By lane, oldest first. */
  readonly channels: Map<string, ChannelRow>;
  readonly channelKeys: Map<string, string>;
  readonly messages: Map<MessageId, StoredMessage>;
  readonly messageKeys: Map<string, MessageId>;
  readonly tombstones: Map<MessageId, Tombstone>;
  readonly deadKeys: Map<string, MessageId>;
  readonly turns: Map<TurnId, TurnRow>;
  /** Those that have not ended. */
  readonly openTurns: Set<TurnId>;
  readonly agents: Map<AgentId, AgentState>;
  readonly backends: Map<AgentId, AgentBackendRow>;
  readonly pickers: Map<PickerId, PickerRow>;
  /** By device and lane. */
  readonly reads: Map<string, ReadStateRow>;
  /** By device, then by message. */
  readonly receipts: Map<DeviceId, Map<MessageId, Lane & { readonly message_id: MessageId }>>;
  readonly media: Map<string, { readonly row: MediaRow; readonly attached_by: string | null }>;
  readonly push: PushState;
  readonly objects: Map<ObjectId, { readonly state: 'stored' | 'removing'; readonly size: number; readonly sha256: string }>;
  /** Bytes begun, by day. */
  readonly days: Map<number, number>;
  /** What was accepted and is gone, by day. */
  readonly gone: Map<string, UsageDay>;
}

export interface MemoryState {
  readonly clock: Clock;
  readonly tenants: Map<TenantId, TenantState>;
  readonly audit: AuditRow[];
  nextSeq(): number;
}

export function memoryState(clock: Clock): MemoryState {
  let seq = 0;
  return { clock, tenants: new Map(), audit: [], nextSeq: () => ++seq };
}

export const newTenantState = (row: TenantRow): TenantState => ({
  row,
  lastNumber: 0,
  tokens: new Map(),
  pairings: new Map(),
  devices: new Map(),
  channels: new Map(),
  channelKeys: new Map(),
  messages: new Map(),
  messageKeys: new Map(),
  tombstones: new Map(),
  deadKeys: new Map(),
  turns: new Map(),
  openTurns: new Set(),
  agents: new Map(),
  backends: new Map(),
  pickers: new Map(),
  reads: new Map(),
  receipts: new Map(),
  media: new Map(),
  push: newPushState(),
  objects: new Map(),
  days: new Map(),
  gone: new Map(),
});

export const sameLane = (a: Lane, b: Lane): boolean => a.chat_id === b.chat_id && a.thread_id === b.thread_id;

export const hasLane = (tenant: TenantState | undefined, lane: Lane): tenant is TenantState => tenant?.channels.has(laneKey(lane)) ?? false;

export const laneOf = (row: Lane): Lane => ({ chat_id: row.chat_id, thread_id: row.thread_id });

/** Order of {@link Place}s. */
export const byPlace = (a: Place, b: Place): number =>
  (a.cursor ?? Number.POSITIVE_INFINITY) === (b.cursor ?? Number.POSITIVE_INFINITY)
    ? a.seq - b.seq
    : (a.cursor ?? Number.POSITIVE_INFINITY) - (b.cursor ?? Number.POSITIVE_INFINITY);
