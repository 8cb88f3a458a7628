import { randomUUID } from 'node:crypto';
import type { AgentId, ChatId, ConnectionId, Lane, MessageId, TenantId, ThreadId, TurnId } from '@iris/protocol';
import type { ManualClock } from '@iris/runtime/testing';
import type { MessageRow, TurnRow } from '../rows.js';
import type { NewTurn, Store } from '../store.js';

export interface StoreClients {
  /** Two clients of one store, as two processes have. For a store in memory both are the same. */
  readonly a: Store;
  readonly b: Store;
  /** The clock that both were made with. */
  readonly clock: ManualClock;
  close(): Promise<void>;
}
export type Subject = () => StoreClients;

/** A name that no other test has. */
export const unique = <T extends string>(prefix: string): T => `${prefix}_${randomUUID()}` as T;

export const flat: Lane = { chat_id: 'android:default' as ChatId, thread_id: null };

/** A tenant of its own for a test, with its default agent. */
export async function newTenant({ a }: StoreClients): Promise<{ tenant_id: TenantId; agent_id: AgentId }> {
  const tenant_id = unique<TenantId>('tn');
  const agent_id = unique<AgentId>('ag');
  await a.tenants.create({ tenant_id, name: 'Test', agent_id, at: 1_000 });
  return { tenant_id, agent_id };
}

export async function newLane({ a }: StoreClients, tenant_id: TenantId, chat_id?: ChatId): Promise<Lane> {
  const made = await a.channels.create({
    tenant_id,
    ...(chat_id === undefined ? {} : { chat_id }),
    name: 'Lane',
    auto: false,
    idempotency_key: unique('k'),
    max: 1_000,
    at: 2_000,
  });
  if (typeof made === 'string') throw new Error(made);
  return { chat_id: made.row.chat_id, thread_id: made.row.thread_id };
}

export const message = (tenant_id: TenantId, fields: Partial<MessageRow> = {}): MessageRow => ({
  ...flat,
  tenant_id,
  message_id: unique<MessageId>('m'),
  role: 'user',
  text: 'hello',
  reasoning: null,
  media: null,
  reply_to: null,
  model: null,
  tokens: null,
  runtime: null,
  ts: 1_724_000_000_000,
  cursor: null,
  idempotency_key: null,
  client_ref: null,
  device_id: null,
  turn_id: null,
  own_id: null,
  steer: false,
  interrupted: false,
  late: false,
  ...fields,
});

export const newTurn = (of: { readonly message_id: MessageId }, fields: Partial<NewTurn> = {}): NewTurn => ({
  turn_id: unique<TurnId>('tn'),
  agent_id: null,
  message_id: of.message_id,
  kind: 'chat',
  device_id: null,
  connection_id: unique<ConnectionId>('c'),
  created_at: 3_000,
  ...fields,
});

/** Puts messages into a lane with the given cursors (null: owed), in this order; their ids. */
export async function fill({ a }: StoreClients, tenant_id: TenantId, cursors: readonly (number | null)[], lane: Lane = flat) {
  const rows = cursors.map((cursor, n) => message(tenant_id, { ...lane, cursor, text: `text ${n}` }));
  await a.messages.insert(rows.map((row) => ({ message: row })));
  return rows.map((row) => row.message_id);
}

/** A queued turn with its message. */
export async function queueTurn(
  { a }: StoreClients,
  tenant_id: TenantId,
  fields: Partial<NewTurn> = {},
  lane: Lane = flat,
): Promise<TurnRow> {
  const row = message(tenant_id, lane);
  const turn = newTurn(row, fields);
  await a.messages.insert([{ message: row, turn }]);
  const queued = await a.turns.get(tenant_id, turn.turn_id);
  if (!queued) throw new Error('the turn was not queued');
  return queued;
}

export const thread = (chat_id: ChatId, thread_id: string): Lane => ({ chat_id, thread_id: thread_id as ThreadId });
