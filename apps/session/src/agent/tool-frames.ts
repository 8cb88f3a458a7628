import { type AgentUpFrameOf, durableFrame } from '@iris/protocol';
import type { AgentEffects, AgentRequest, Context } from '../context.js';
import { mergeEffects } from '../emission.js';
import { shownMedia } from '../media/agent-media.js';
import { laneFrame, toolEndOut, toolName } from '../rules/frames.js';
import { scopeOf } from './scope.js';
import { becomes } from './turn-frames.js';

type Handler<T extends AgentRequest['frame']['type']> = (
  request: AgentRequest & { readonly frame: AgentUpFrameOf<T> },
  context: Context,
) => Promise<AgentEffects>;

export const toolStart: Handler<'tool.start'> = async (request, context) => {
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind !== 'open') return {};
  const { state } = scope;
  const { payload } = request.frame;
  const tools = [...state.tools.filter(({ index }) => index !== payload.index), { index: payload.index, name: payload.name }];
  return mergeEffects([
    becomes(room, { ...state, tools }),
    { frames: [durableFrame(laneFrame('tool.start', state, payload), { key: `${toolName(state.turn_id, payload.index)}:start` })] },
  ]);
};

export const toolEnd: Handler<'tool.end'> = async (request, context) => {
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind !== 'open') return {};
  const { state } = scope;
  const { payload } = request.frame;
  return mergeEffects([
    becomes(room, { ...state, tools: state.tools.filter(({ index }) => index !== payload.index) }),
    { frames: [toolEndOut(state, payload)] },
  ]);
};

/** Accepted only when the bytes are stored: a device that asks for them must get them. */
export const mediaOffer: Handler<'media.offer'> = async (request, context) => {
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind === 'foreign') return {};
  const { payload } = request.frame;
  const [entry] = await shownMedia(request, [payload], 'offered', context);
  return { frames: [durableFrame(laneFrame('media.offer', scope.lane, entry as typeof payload), { key: `offer:${request.key}` })] };
};

export const notification: Handler<'notification'> = async (request, context) => {
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind === 'foreign') return {};
  return { frames: [durableFrame(laneFrame('notification', scope.lane, request.frame.payload), { key: `notification:${request.key}` })] };
};
