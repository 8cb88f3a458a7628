import { type AgentUpFrameOf, durableFrame, type Lane, notFound, rateLimited, unsupported } from '@iris/protocol';
import type { AgentEffects, AgentRequest, Context } from '../context.js';
import { channelCreated, channelRenamed, laneOf } from '../rules/frames.js';
import { fittedName } from '../rules/names.js';
import { scopeOf } from './scope.js';

type Handler<T extends AgentRequest['frame']['type']> = (
  request: AgentRequest & { readonly frame: AgentUpFrameOf<T> },
  context: Context,
) => Promise<AgentEffects>;

export const channelCreate: Handler<'channel.create'> = async (request, context) => {
  const { tenant_id, frame } = request;
  const { store, directory, clock } = context;
  const { name, kind = 'channel', parent_chat_id = null } = frame.payload;
  if (kind === 'thread' && parent_chat_id === null) throw unsupported('parent_chat_id: missing');
  const max = (await directory.tenant(tenant_id))?.quotas.channels ?? 0;
  const made = await store.channels.create({
    tenant_id,
    ...(kind === 'thread' ? { chat_id: parent_chat_id as Lane['chat_id'] } : {}),
    name: fittedName(name),
    auto: true,
    idempotency_key: request.key,
    max,
    at: clock.now(),
  });
  if (made === 'no_channel') throw notFound('parent_chat_id');
  if (made === 'over_quota') throw rateLimited('no more channels', 60_000);
  const shown = channelCreated(made.row);
  return {
    frames: [durableFrame(shown, { key: `created:${made.row.chat_id}:${made.row.thread_id ?? ''}` })],
    know: () => directory.changed(tenant_id, 'channels'),
    reply: shown,
  };
};

/** The agent's title for a lane. A person's name for it is never overwritten. */
export const channelRename: Handler<'channel.rename'> = async (request, context) => {
  const { tenant_id, frame } = request;
  const { store, directory } = context;
  const lane = laneOf(frame) ?? (await turnLane(request, context));
  if (lane === undefined) throw unsupported('chat_id: missing');
  const name = fittedName(frame.payload.name);
  const current = await directory.lane(tenant_id, lane);
  if (current === undefined) throw notFound('chat_id');
  const { only_if_current } = frame.payload;
  const row = await store.channels.rename(tenant_id, lane, name, { auto: true, only_if: only_if_current ?? current.name });
  if (row === undefined) throw notFound('chat_id');
  if (row === 'conflict') throw unsupported('name: a person gave it, or it has changed');
  const shown = channelRenamed(row);
  return {
    frames: [durableFrame(shown, { key: `renamed:${request.key}` })],
    know: () => directory.changed(tenant_id, 'channels'),
    reply: shown,
  };
};

async function turnLane(request: AgentRequest, context: Context): Promise<Lane | undefined> {
  const scope = await scopeOf(request, await context.rooms.of(request.tenant_id), context);
  return scope.kind === 'foreign' ? undefined : { chat_id: scope.lane.chat_id, thread_id: scope.lane.thread_id };
}
