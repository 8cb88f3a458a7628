import { type AgentUpFrameOf, durableFrame, type MessageId } from '@iris/protocol';
import type { AgentEffects, AgentRequest, Context } from '../context.js';
import { type LiveFrame, mergeEffects } from '../emission.js';
import { acceptedKey, busyOut, laneFrame, liveReasoningKey, liveTextKey, toolName } from '../rules/frames.js';
import { agentMessageId } from '../rules/ids.js';
import { closeTurn } from './close-turn.js';
import { type BusyReason, busyIn, type Room, type TextState, type TurnState, textKey, turnKey } from './room.js';
import { namerOf, scopeOf } from './scope.js';

type Handler<T extends AgentRequest['frame']['type']> = (
  request: AgentRequest & { readonly frame: AgentUpFrameOf<T> },
  context: Context,
) => Promise<AgentEffects>;

/** A turn's state as it becomes: told to those who join before the frames that say so. */
export const becomes = (room: Room, next: TurnState): AgentEffects => ({
  values: { [turnKey(next.turn_id)]: JSON.stringify(next) },
  know: () => void room.turns.set(next.turn_id, next),
});

export const turnAccepted: Handler<'turn.accepted'> = async (request, context) => {
  const { tenant_id, link } = request;
  const { store, clock, rooms } = context;
  const room = await rooms.of(tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind === 'ended') return stopAgain(request, context, scope.lane);
  if (scope.kind !== 'open') return {};
  const { state } = scope;
  // By the process that it was offered to: a new one may only pass on what the old one had said, and know nothing of the turn.
  const boot_id = state.boot_id ?? link.boot_id;
  const outcome = await store.turns.accept(tenant_id, state.turn_id, { boot_id, at: clock.now() });
  if (outcome === 'ended') return stopAgain(request, context, state);
  if (outcome === undefined) return {};
  // Offered again meanwhile, and accepted by what an older process had said: that offer is not to be taken.
  const { acked_seq, sent_seq = Number.POSITIVE_INFINITY } = request.link;
  if (acked_seq < sent_seq) await store.agentFrames.withdraw(tenant_id, request.agent_id, state.turn_id);
  // A command beside a running turn sends no busy or idle of its own.
  const beside = state.kind === 'command' && busyIn(room, state).length > 0;
  const reason = beside ? null : 'processing';
  const next: TurnState = { ...state, accepted: true, boot_id, reason: state.reason ?? reason };
  return mergeEffects([
    // The lane is this turn's from now on: a command that was alone in it is one beside a running turn.
    ...(state.kind === 'chat' ? busyIn(room, state).filter(({ kind }) => kind === 'command') : []).map((command) =>
      becomes(room, { ...command, reason: null }),
    ),
    {
      ...becomes(room, next),
      frames: next.reason === null ? [] : [busyOut(next, 'processing', acceptedKey(state))],
      live: await receipt(tenant_id, state, state.message_id, context),
    },
  ]);
};

/** It was taken back before the agent said that it takes it. */
async function stopAgain(
  { tenant_id, agent_id, frame }: AgentRequest,
  { store }: Context,
  lane: { chat_id: string; thread_id: string | null },
): Promise<AgentEffects> {
  const stop = { type: 'agent.stop', chat_id: lane.chat_id, thread_id: lane.thread_id, turn_id: frame.turn_id, payload: {} };
  return {
    agent: [{ agent_id, rows: await store.agentFrames.append(tenant_id, agent_id, [{ frame: stop, key: `stop:${frame.turn_id}` }]) }],
  };
}

/** The sender hears that the agent has its message: now, or on its next connection. */
export async function receipt(
  tenant_id: AgentRequest['tenant_id'],
  state: Pick<TurnState, 'chat_id' | 'thread_id' | 'device_id'>,
  message_id: MessageId,
  { presence, store }: Context,
): Promise<LiveFrame[]> {
  const { device_id, chat_id, thread_id } = state;
  if (device_id === null || (await store.messages.deleted(tenant_id, [message_id])).size > 0) return [];
  const to = await presence.of(tenant_id, device_id);
  if (to === undefined) {
    await store.receipts.owe({ tenant_id, device_id, chat_id, thread_id, message_id });
    return [];
  }
  return [{ frame: laneFrame('read.receipt', state, { message_id }), key: '', rev: 0, to }];
}

export const agentBusy: Handler<'agent.busy'> = async (request, context) => {
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind !== 'open' || (scope.state.kind === 'command' && scope.state.reason === null)) return {};
  const { reason } = request.frame.payload;
  const next: TurnState = { ...scope.state, reason };
  return { ...becomes(room, next), frames: [busyOut(next, reason, `busy:${request.key}`)] };
};

export const turnEnd: Handler<'turn.end'> = async (request, context) => {
  const { outcome, error } = request.frame.payload;
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind !== 'open') return {};
  const effects = await closeTurn(context, request.tenant_id, room, scope.state, outcome, { own: true, error });
  return { ...effects, advance: [scope.lane] };
};

/** The whole state of an open turn, after a reconnect: what devices lack of it is made good. */
export const turnSnapshot: Handler<'turn.snapshot'> = async (request, context) => {
  const { tenant_id, frame } = request;
  const { clock, rooms, silence, store } = context;
  const room = await rooms.of(tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind !== 'open') return {};
  const { state } = scope;
  const { messages, tools = [], reason } = frame.payload;
  const running = messages.map((message) => ({
    ...message,
    own_id: message.message_id,
    id: agentMessageId(namerOf(request), message.message_id),
  }));
  const gone = await unwanted(
    tenant_id,
    running.map(({ id }) => id),
    context,
  );
  const live = running.filter(({ id }) => !gone.has(id));
  const started = live.filter(({ id }) => !state.messages.some(({ message_id }) => message_id === id));
  const newTools = tools.filter(({ index }) => !state.tools.some((tool) => tool.index === index));
  const busy = isBusyReason(reason) && reason !== state.reason && (state.reason !== null || state.kind === 'chat') ? reason : state.reason;
  const next: TurnState = {
    ...state,
    accepted: true,
    boot_id: request.link.boot_id,
    reason: busy,
    messages: [...state.messages, ...started.map(({ id, own_id, role }) => ({ message_id: id, own_id, role }))],
    tools: [...state.tools, ...newTools.map(({ index, name }) => ({ index, name }))],
  };
  if (!state.accepted) await store.turns.accept(tenant_id, state.turn_id, { boot_id: request.link.boot_id, at: clock.now() });
  const texts = live.map(
    ({ id, text, reasoning = '' }) =>
      [id, nextText(room, id, { text, reasoning }, { at: clock.now(), epoch: request.link.epoch })] as const,
  );
  const further = texts.some(([id, { text, reasoning }]) => {
    const before = room.texts.get(id);
    return text !== (before?.text ?? '') || reasoning !== (before?.reasoning ?? '');
  });
  if (further || started.length > 0 || newTools.length > 0 || busy !== state.reason) silence.heard(request.agent_id, state.turn_id);
  return mergeEffects([
    becomes(room, next),
    {
      frames: [
        ...(busy !== state.reason && busy !== null ? [busyOut(next, busy, `busy:${request.key}`)] : []),
        ...started.map(({ id, role }) => durableFrame(laneFrame('message.start', state, { message_id: id, role }), { key: `start:${id}` })),
        ...newTools.map((tool) =>
          durableFrame(laneFrame('tool.start', state, tool), { key: `${toolName(state.turn_id, tool.index)}:start` }),
        ),
      ],
      values: Object.fromEntries(texts.map(([id, text]) => [textKey(id), JSON.stringify(text)])),
      know() {
        for (const [id, text] of texts) room.texts.set(id, text);
      },
      live: texts.flatMap(([message_id, { text, reasoning, rev }]) => [
        ...(reasoning === '' ? [] : [reasoningOut(state, message_id, reasoning, rev)]),
        updateOut(state, message_id, text, rev),
      ]),
    },
  ]);
};

/** Of these messages, those that are finished or deleted: nothing about them may be said any more. */
async function unwanted(tenant_id: AgentRequest['tenant_id'], ids: readonly MessageId[], { store }: Context): Promise<Set<MessageId>> {
  if (ids.length === 0) return new Set();
  const gone = new Set(await store.messages.deleted(tenant_id, ids));
  for (const id of ids) if (!gone.has(id) && (await store.messages.get(tenant_id, id)) !== undefined) gone.add(id);
  return gone;
}

export const updateOut = (state: TurnState, message_id: MessageId, text: string, rev: number): LiveFrame => ({
  frame: laneFrame('message.update', state, { message_id, text }),
  key: liveTextKey(message_id),
  rev,
  about: message_id,
});

/** The whole of it, from which the edges make pieces for the devices that asked for it; no other is told. */
export const reasoningOut = (state: TurnState, message_id: MessageId, text: string, rev: number): LiveFrame => ({
  frame: laneFrame('reasoning.delta', state, { message_id, offset: 0, text }),
  key: liveReasoningKey(message_id),
  rev,
  about: message_id,
});

/** The next state of a text. Its number rises also when another instance made the one before, by a clock that is ahead. */
export function nextText(
  room: Room,
  message_id: MessageId,
  { text, reasoning }: { text: string; reasoning: string },
  { at, epoch }: { at: number; epoch: number },
): TextState {
  const before = room.texts.get(message_id);
  const rev = Math.max(at, (before?.rev ?? 0) + 1);
  return {
    text,
    reasoning,
    rev,
    text_rev: before?.text === text ? (before.text_rev ?? rev) : rev,
    reasoning_rev: before?.reasoning === reasoning ? (before.reasoning_rev ?? rev) : rev,
    epoch,
  };
}

const isBusyReason = (reason: string | undefined): reason is BusyReason =>
  reason === 'processing' || reason === 'tool' || reason === 'waiting_input' || reason === 'cron';
