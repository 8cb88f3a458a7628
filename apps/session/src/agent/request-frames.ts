import { isDeepStrictEqual } from 'node:util';
import type { AgentUpFrameOf, DownFrame } from '@iris/protocol';
import type { AgentEffects, AgentRequest, Context } from '../context.js';
import { mergeEffects } from '../emission.js';
import { historyPage } from '../handlers/history.js';
import { laneIn } from '../handlers/lookup.js';
import { searchResults } from '../handlers/search.js';
import { laneOf } from '../rules/frames.js';
import { queueSteer } from './close-turn.js';
import { scopeOf } from './scope.js';
import { becomes, receipt } from './turn-frames.js';

type Handler<T extends AgentRequest['frame']['type']> = (
  request: AgentRequest & { readonly frame: AgentUpFrameOf<T> },
  context: Context,
) => Promise<AgentEffects>;
type Reader<T extends AgentRequest['frame']['type']> = (
  request: AgentRequest & { readonly frame: AgentUpFrameOf<T> },
  context: Context,
) => Promise<DownFrame>;

/** The lane's past, for agents without a memory of their own. */
export const agentHistory: Reader<'history'> = async (request, context) => {
  const scope = await scopeOf(request, await context.rooms.of(request.tenant_id), context);
  const lane = scope.kind === 'foreign' ? undefined : scope.lane;
  return historyPage(request.tenant_id, lane ?? { chat_id: '' as never, thread_id: null }, request.frame.payload, context);
};

export const agentSearch: Reader<'search'> = async (request, context) => {
  const { query, scope } = request.frame.payload;
  const lane = scope === 'all' || laneOf(request.frame) === undefined ? undefined : await laneIn(request.tenant_id, request.frame, context);
  return searchResults(request.tenant_id, query, lane, context);
};

/** What the agent answers to `commands.catalog`, or says when it changes. */
export const agentCatalog: Handler<'commands.catalog'> = async ({ tenant_id, agent_id, frame }, { store, directory }) => {
  const { commands } = frame.payload;
  // Said at each beginning, and again when it is asked: most times it is what stands. Keys in any order: Postgres keeps them in its own.
  const known = await directory.agent(tenant_id, agent_id);
  if (known !== undefined && isDeepStrictEqual(known.commands, commands)) return {};
  await store.agents.setCommands(tenant_id, agent_id, commands);
  return { know: () => directory.changed(tenant_id, 'agents') };
};

/** Whether the running turn took a text that was given to it. What it could not take is the lane's next turn. */
export const agentSteer: Handler<'agent.steer'> = async (request, context) => {
  const { tenant_id, frame } = request;
  const room = await context.rooms.of(tenant_id);
  const state = [...room.turns.values()].find((turn) => turn.agent_id === request.agent_id && turn.steers.some((id) => id === frame.id));
  const message_id = state?.steers.find((id) => id === frame.id);
  if (state === undefined || message_id === undefined) return {};
  const next = becomes(room, { ...state, steers: state.steers.filter((id) => id !== message_id) });
  if (frame.payload.accepted) {
    const message = await context.store.messages.get(tenant_id, message_id);
    const live = message === undefined ? [] : await receipt(tenant_id, message, message_id, context);
    return mergeEffects([next, { live }]);
  }
  await queueSteer(context, tenant_id, message_id);
  return { ...next, advance: [{ chat_id: state.chat_id, thread_id: state.thread_id }] };
};
