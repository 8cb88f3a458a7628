import { type Lane, notFound, type Quotas, RequestError, type TenantId, type UpFrame } from '@iris/protocol';
import type { Context } from '../context.js';
import { laneOf } from '../rules/frames.js';

/** @throws RequestError `auth` when the tenant is gone or suspended */
export async function quotasOf(tenant_id: TenantId, { directory }: Context): Promise<Quotas> {
  const tenant = await directory.tenant(tenant_id);
  if (tenant?.active !== true) throw new RequestError('auth', 'not accepted');
  return tenant.quotas;
}

/** The lane a request names. @throws RequestError `not_found` when there is no such channel, or no such thread in it */
export async function laneIn(
  tenant_id: TenantId,
  frame: Pick<UpFrame, 'chat_id' | 'thread_id'>,
  { directory }: Pick<Context, 'directory'>,
): Promise<Lane> {
  const lane = laneOf(frame) ?? { chat_id: (await directory.channels(tenant_id)).defaultChat, thread_id: frame.thread_id ?? null };
  if ((await directory.lane(tenant_id, lane)) !== undefined) return lane;
  throw await missing(tenant_id, lane, { directory });
}

export async function missing(tenant_id: TenantId, lane: Lane, { directory }: Pick<Context, 'directory'>): Promise<RequestError> {
  if (lane.thread_id === null) return notFound('chat_id');
  const channel = await directory.lane(tenant_id, { chat_id: lane.chat_id, thread_id: null });
  return notFound(channel === undefined ? 'chat_id' : 'thread_id');
}

/** Appends to every agent of the tenant that was ever there. */
export async function tellAgents(
  tenant_id: TenantId,
  frame: Record<string, unknown>,
  key: string,
  { store, directory }: Pick<Context, 'store' | 'directory'>,
): Promise<
  {
    agent_id: Awaited<ReturnType<Context['directory']['agents']>>[number]['agent_id'];
    rows: Awaited<ReturnType<Context['store']['agentFrames']['append']>>;
  }[]
> {
  const agents = (await directory.agents(tenant_id)).filter(({ install_id }) => install_id !== null);
  return Promise.all(
    agents.map(async ({ agent_id }) => ({ agent_id, rows: await store.agentFrames.append(tenant_id, agent_id, [{ frame, key }]) })),
  );
}
