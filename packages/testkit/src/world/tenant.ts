import { type AgentId, makeToken, type Quotas, type TenantId, type TokenId } from '@iris/protocol';
import { type Store, tokenHash } from '@iris/store';
import { type Evidence, laneOf } from '../checks/index.js';
import type { Payload } from '../frames.js';
import type { TestDevice } from '../test-device.js';

/** A fresh tenant, made straight in the store. */
export interface Tenancy {
  readonly tenant_id: TenantId;
  readonly agent_id: AgentId;
  readonly device_token: string;
  readonly agent_token: string;
}

/** @param name letters and digits, unique within the store */
export async function makeTenant(store: Store, name: string, options: { at: number; quotas?: Partial<Quotas> }): Promise<Tenancy> {
  const tenant_id = name as TenantId;
  const agent_id = `agent-${name}` as AgentId;
  const { at } = options;
  await store.tenants.create({ tenant_id, name, agent_id, at });
  if (options.quotas) await store.tenants.setQuotas(tenant_id, options.quotas);
  const token = async (kind: 'device' | 'agent') => {
    const text = makeToken(kind, tenant_id, `secret-of-${kind}-${name}`.padEnd(32, '0'));
    await store.tokens.create({
      tenant_id,
      token_id: `${kind}-token` as TokenId,
      kind,
      hash: tokenHash(text),
      device_id: null,
      agent_id: kind === 'agent' ? agent_id : null,
      created_at: at,
    });
    return text;
  };
  return { tenant_id, agent_id, device_token: await token('device'), agent_token: await token('agent') };
}

/** One more agent of a tenant, with a token of its own. */
export async function makeAgent(
  store: Store,
  { tenant_id }: Pick<Tenancy, 'tenant_id'>,
  name: string,
  options: { at: number; is_default?: boolean },
): Promise<{ agent_id: AgentId; token: string; token_id: TokenId }> {
  const agent_id = `agent-${name}` as AgentId;
  const token_id = `token-of-${name}` as TokenId;
  const token = makeToken('agent', tenant_id, `secret-of-agent-${name}`.padEnd(32, '0'));
  const created_at = options.at;
  await store.agents.create({ tenant_id, agent_id, name, is_default: options.is_default ?? false, at: created_at });
  await store.tokens.create({ tenant_id, token_id, kind: 'agent', hash: tokenHash(token), device_id: null, agent_id, created_at });
  return { agent_id, token, token_id };
}

/** Whole history of every lane of the tenant, as one device is told it. */
export async function historiesOf(device: TestDevice): Promise<Evidence['histories']> {
  const histories = new Map<string, readonly Payload[]>();
  for (const lane of lanesOf(device)) histories.set(laneOf(lane), await device.historyAll(lane));
  return histories;
}

interface Lane {
  readonly chat_id: string;
  readonly thread_id: string | null;
}

/** Lanes that stand, by what the device was told on its last connection, in whatever order it came. */
function lanesOf(device: TestDevice): Lane[] {
  const connection = device.connections.at(-1);
  if (connection?.ack === undefined) throw new Error(`${device.device_id} has not said hello`);
  const entries = (payload: Payload) => (payload.channels ?? []) as { chat_id: string; thread_id?: string }[];
  const frames = device.received.all.filter((one) => one.connection === connection.number).map(({ frame }) => frame);
  // Ids are never given twice: what was deleted once is gone.
  const gone = frames.flatMap(({ type, payload }) => (type === 'channel.deleted' ? [payload] : []));
  const told = frames.flatMap(({ type, payload }) =>
    type === 'hello.ack' || type === 'channel.list' ? entries(payload) : type === 'channel.created' ? entries({ channels: [payload] }) : [],
  );
  const standing = told.filter(
    ({ chat_id, thread_id }) =>
      !gone.some((lane) => lane.chat_id === chat_id && (lane.thread_id === undefined || lane.thread_id === thread_id)),
  );
  return [
    ...new Map(
      standing.map(({ chat_id, thread_id }) => [laneOf({ chat_id, thread_id }), { chat_id, thread_id: thread_id ?? null }]),
    ).values(),
  ];
}
