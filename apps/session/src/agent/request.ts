import { type MessageId, RequestError, unsupported } from '@iris/protocol';
import { type AgentEffects, type AgentRequest, type Answer, type Context, done } from '../context.js';
import { mediaRequest } from '../media/agent-media.js';
import { agentMessageId } from '../rules/ids.js';
import { agentFrameHandler } from './frames.js';
import { agentHistory, agentSearch } from './request-frames.js';
import { namerOf } from './scope.js';
import { asItStands, goesOn } from './unanswered.js';

/** Deletions go into the outbox's past, so everything ahead of them must be in it. */
const apart: ReadonlySet<string> = new Set(['message.delete']);

const nothing: ReadonlySet<MessageId> = new Set();

/** What must not have been deleted before it begins. */
const aboutOf = ({ frame, ...request }: Omit<AgentRequest, 'deleted'>): readonly MessageId[] =>
  frame.type === 'message.start' || frame.type === 'commentary'
    ? [agentMessageId(namerOf({ ...request, frame }), frame.payload.message_id)]
    : [];

/**
 * One frame of an agent's link. A numbered one counts as processed when its effect is stored and appended, or when it was refused for good; a
 * repeat of one that is processed has no effect.
 */
export async function agentRequest(request: Omit<AgentRequest, 'deleted'>, context: Context): Promise<Answer> {
  const { frame, link, tenant_id } = request;
  const { links, emitter, rooms, turns, silence } = context;
  if (frame.type !== 'turn.snapshot') silence.heard(link.agent_id, frame.turn_id);
  if (frame.ack !== undefined) links.acked(link, frame.ack);
  if (frame.seq !== undefined && frame.seq <= link.done_seq) {
    links.processed(link, frame.seq);
    links.repeat(link);
    return done;
  }
  if (frame.type === 'ack' || frame.type === 'ping' || frame.type === 'pong') return done;
  if (frame.type === 'history') return { kind: 'frame', frame: await agentHistory({ ...request, frame, deleted: nothing }, context) };
  if (frame.type === 'search') return { kind: 'frame', frame: await agentSearch({ ...request, frame, deleted: nothing }, context) };
  if (frame.type === 'media.request') return { kind: 'frame', frame: await mediaRequest({ ...request, frame, deleted: nothing }, context) };
  const handle = agentFrameHandler(frame.type);
  if (handle === undefined) throw unsupported(`${frame.type}: not handled here`);
  let effects: AgentEffects = {};
  let goes = false;
  try {
    const placing = emitter.emit({
      kind: 'change',
      tenant_id,
      ...(apart.has(frame.type) ? { place: 'fresh' as const } : {}),
      about: aboutOf(request),
      async run(deleted) {
        let goingOn: Record<string, string> = {};
        if (frame.turn_id !== undefined) {
          const room = await rooms.of(tenant_id);
          // Of several tries the first takes it out of the room, and each writes what has become of the turn meanwhile.
          goes = goesOn(request.agent_id, frame, room, context) || goes;
          if (goes) goingOn = asItStands(room, frame.turn_id);
        }
        const handled = await withReply(request, await handle({ ...request, deleted }, context), context);
        effects = { ...handled, values: { ...goingOn, ...handled.values } };
        return effects;
      },
    });
    request.entered();
    await placing;
  } catch (error) {
    // Refused for good: it would be refused again.
    if (error instanceof RequestError && frame.seq !== undefined) links.processed(link, frame.seq);
    throw error;
  }
  if (frame.seq !== undefined) links.processed(link, frame.seq);
  for (const lane of effects.advance ?? []) turns.advance(tenant_id, () => lane);
  if (frame.type === 'turn.end' && effects.advance !== undefined) turns.freed(tenant_id);
  return effects.reply === undefined ? done : { kind: 'frame', frame: effects.reply };
}

/**
 * The answer to a numbered request is numbered itself: the request is not sent again once it is acked, so an answer that went with the link
 * must come on the next one.
 */
async function withReply(
  { tenant_id, agent_id, frame, key }: Omit<AgentRequest, 'deleted'>,
  effects: AgentEffects,
  { store }: Context,
): Promise<AgentEffects> {
  const { reply, ...rest } = effects;
  if (reply === undefined || frame.seq === undefined) return effects;
  if (frame.id === undefined) return rest;
  const rows = await store.agentFrames.append(tenant_id, agent_id, [{ frame: { ...reply, id: frame.id }, key: `reply:${key}` }]);
  return { ...rest, agent: [...(rest.agent ?? []), { agent_id, rows }] };
}
