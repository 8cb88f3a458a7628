import { type AgentUpFrame, type AgentUpFrameOf, type Lane, laneKey } from '@iris/protocol';
import type { Context } from '../context.js';
import type { LiveFrame } from '../emission.js';
import { laneFrame, laneOf, toolName, turnName } from '../rules/frames.js';
import { agentMessageId } from '../rules/ids.js';
import type { AgentLink } from './link.js';
import { type Room, type TextState, type TurnState, textKey } from './room.js';
import { nextText, reasoningOut, updateOut } from './turn-frames.js';
import { asItStands, goesOn } from './unanswered.js';

/**
 * Ephemeral frames of an agent: shown live, and the text so far kept for who joins and for the end of a turn that is cut short. They belong to
 * what is open: what comes after a message's or a turn's end is dropped.
 */
export async function agentUpdate(link: AgentLink, frame: AgentUpFrame, order: number, context: Context): Promise<void> {
  const { tenant_id } = link;
  context.silence.heard(link.agent_id, frame.turn_id);
  if (!isNewest(link, frame, order)) return;
  const room = await context.rooms.of(tenant_id);
  if (goesOn(link.agent_id, frame, room, context)) context.emitter.put(tenant_id, asItStands(room, frame.turn_id!));
  const state = frame.turn_id === undefined ? undefined : room.turns.get(frame.turn_id);
  if (frame.turn_id !== undefined && (state === undefined || state.ended || state.agent_id !== link.agent_id)) return;
  if (frame.type === 'typing' || frame.type === 'typing.stop') {
    const lane = state ?? laneOf(frame);
    const stands = lane !== undefined && (state !== undefined || (await context.directory.lane(tenant_id, lane)) !== undefined);
    return stands ? typing(link, frame, lane, state, room, context) : undefined;
  }
  if (state === undefined) return;
  switch (frame.type) {
    case 'message.update': {
      // The edge puts both together from what the agent streams.
      const { reasoning: thought } = frame.payload as { reasoning?: unknown };
      if (typeof thought === 'string') reasoning(link, frame, state, room, context, order, () => thought);
      if (frame.payload.text !== room.texts.get(idIn(link, frame, state) ?? ('' as never))?.text)
        text(link, frame, state, room, context, order, () => frame.payload.text);
      return;
    }
    case 'message.delta':
      return text(link, frame, state, room, context, order, (before) =>
        // What does not fit waits for the next whole text.
        frame.payload.offset === before.length ? before + frame.payload.text : undefined,
      );
    case 'reasoning.delta': {
      const { offset, text: more } = frame.payload;
      return reasoning(link, frame, state, room, context, order, (before) =>
        offset === 0 ? more : offset === before.length ? before + more : undefined,
      );
    }
    case 'tool.progress':
      if (!state.tools.some(({ index }) => index === frame.payload.index)) return;
      return show(context, tenant_id, {
        frame: laneFrame('tool.progress', state, frame.payload),
        key: toolName(state.turn_id, frame.payload.index),
        rev: order,
        about: toolName(state.turn_id, frame.payload.index),
      });
  }
}

const heardMax = 1_000;
/** What the bus brings late or twice is older than what was shown: of one thing, only what the link said later counts. */
function isNewest({ heard }: AgentLink, frame: AgentUpFrame, order: number): boolean {
  const { message_id, index } = frame.payload as { message_id?: string; index?: number };
  const about = frame.type === 'typing.stop' ? 'typing' : frame.type;
  const key = `${about} ${frame.turn_id ?? ''} ${message_id ?? index ?? ''}`;
  if (order <= (heard.get(key) ?? 0)) return false;
  heard.delete(key);
  heard.set(key, order);
  if (heard.size > heardMax) heard.delete(heard.keys().next().value!);
  return true;
}

const show = (context: Context, tenant_id: AgentLink['tenant_id'], frame: LiveFrame) => context.emitter.live(tenant_id, [frame]);

/** A newer link has said more: this waited in an instance that stood still, and has read the tenant's state anew since. */
const isSuperseded = ({ epoch }: AgentLink, text: TextState | undefined): boolean => (text?.epoch ?? 0) > epoch;

const idIn = (link: AgentLink, frame: AgentUpFrameOf<'message.update' | 'message.delta' | 'reasoning.delta'>, state: TurnState) => {
  const message_id = agentMessageId({ ...link, turn_id: state.turn_id }, frame.payload.message_id);
  return state.messages.some((message) => message.message_id === message_id) ? message_id : undefined;
};

function text(
  link: AgentLink,
  frame: AgentUpFrameOf<'message.update' | 'message.delta'>,
  state: TurnState,
  room: Room,
  context: Context,
  order: number,
  next: (before: string) => string | undefined,
): void {
  const message_id = idIn(link, frame, state);
  if (message_id === undefined) return;
  const before = room.texts.get(message_id);
  if (isSuperseded(link, before)) return;
  const text = next(before?.text ?? '');
  if (text === undefined) return;
  const after = nextText(room, message_id, { text, reasoning: before?.reasoning ?? '' }, { at: order, epoch: link.epoch });
  room.texts.set(message_id, after);
  context.emitter.put(link.tenant_id, { [textKey(message_id)]: JSON.stringify(after) });
  show(context, link.tenant_id, updateOut(state, message_id, text, after.rev));
}

/** Kept for the stop, whole, where every app gets it; shown meanwhile to those that asked. */
function reasoning(
  link: AgentLink,
  frame: AgentUpFrameOf<'message.update' | 'reasoning.delta'>,
  state: TurnState,
  room: Room,
  context: Context,
  order: number,
  next: (before: string) => string | undefined,
): void {
  const message_id = idIn(link, frame, state);
  if (message_id === undefined) return;
  const before = room.texts.get(message_id);
  if (isSuperseded(link, before)) return;
  const whole = next(before?.reasoning ?? '');
  if (whole === undefined || whole === before?.reasoning) return;
  const after = nextText(room, message_id, { text: before?.text ?? '', reasoning: whole }, { at: order, epoch: link.epoch });
  room.texts.set(message_id, after);
  context.emitter.put(link.tenant_id, { [textKey(message_id)]: JSON.stringify(after) });
  show(context, link.tenant_id, reasoningOut(state, message_id, whole, after.rev));
}

function typing(
  link: AgentLink,
  frame: AgentUpFrameOf<'typing' | 'typing.stop'>,
  lane: Lane,
  state: TurnState | undefined,
  room: Room,
  context: Context,
): void {
  const { tenant_id } = link;
  const key = laneKey(lane);
  const before = room.typing.get(key);
  before?.cancel();
  room.typing.delete(key);
  if (frame.type === 'typing.stop' || !frame.payload.on) {
    if (before !== undefined) show(context, tenant_id, { frame: laneFrame('typing.stop', lane, {}), key: '', rev: 0 });
    return;
  }
  const timer = context.clock.after(context.config.typing_ms, () => {
    room.typing.delete(key);
    show(context, tenant_id, { frame: laneFrame('typing.stop', lane, {}), key: '', rev: 0 });
  });
  room.typing.set(key, { lane, cancel: () => timer.cancel() });
  const about = state === undefined ? {} : { about: turnName(state.turn_id) };
  show(context, tenant_id, { frame: laneFrame('typing', lane, { on: true }), key: '', rev: 0, ...about });
}
