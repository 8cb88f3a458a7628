import { type AgentUpFrameOf, durableFrame, type Lane, laneKey, type MessageId, notFound } from '@iris/protocol';
import type { MessageRow } from '@iris/store';
import type { AgentEffects, AgentRequest, Context } from '../context.js';
import { mergeEffects, type OutFrame } from '../emission.js';
import { tellAgents } from '../handlers/lookup.js';
import { shownMedia } from '../media/agent-media.js';
import { laneFrame, messageOut, stopOut } from '../rules/frames.js';
import { agentMessageId, finalMark, isMessageId } from '../rules/ids.js';
import { messageRow } from '../rules/rows.js';
import { type Room, type TurnState, textKey } from './room.js';
import { namerOf, type Scope, scopeOf } from './scope.js';
import { becomes, nextText } from './turn-frames.js';

type Handler<T extends AgentRequest['frame']['type']> = (
  request: AgentRequest & { readonly frame: AgentUpFrameOf<T> },
  context: Context,
) => Promise<AgentEffects>;

export const messageStart: Handler<'message.start'> = async (request, context) => {
  const { tenant_id, frame } = request;
  const { clock } = context;
  const room = await context.rooms.of(tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind !== 'open') return {};
  const { state } = scope;
  const message_id = agentMessageId(namerOf(request), frame.payload.message_id);
  // Deleted before it began, in an earlier life of this frame; or finished, when the frame comes again.
  if (request.deleted.has(message_id)) return {};
  const text = nextText(room, message_id, { text: '', reasoning: '' }, { at: clock.now(), epoch: request.link.epoch });
  const running = state.messages.some((message) => message.message_id === message_id);
  const next: TurnState = running
    ? state
    : { ...state, messages: [...state.messages, { message_id, own_id: frame.payload.message_id, role: frame.payload.role }] };
  const payload = { message_id, role: frame.payload.role };
  return mergeEffects([
    becomes(room, next),
    {
      frames: [durableFrame(laneFrame('message.start', state, payload), { key: `start:${message_id}` })],
      ...(running ? {} : { values: { [textKey(message_id)]: JSON.stringify(text) }, know: () => void room.texts.set(message_id, text) }),
    },
  ]);
};

interface Final {
  readonly message_id: string;
  readonly role: MessageRow['role'];
  readonly text: string;
  readonly reasoning: string | undefined;
  readonly media: readonly object[] | undefined;
  readonly reply_to: string | null | undefined;
  readonly model: string | undefined;
  readonly tokens: number | undefined;
  readonly runtime: object | undefined;
}

export const messageStop: Handler<'message.stop'> = async (request, context) => {
  const { final_text, message_id, reasoning, media, model, tokens, runtime } = request.frame.payload;
  return final(
    request,
    context,
    { message_id, role: 'assistant', text: final_text, reasoning, media, model, tokens, runtime, reply_to: undefined },
    stopOut,
  );
};

export const message: Handler<'message'> = async (request, context) => {
  const { message_id, role = 'assistant', text, reasoning, media, reply_to, model, tokens, runtime } = request.frame.payload;
  return final(request, context, { message_id, role, text, reasoning, media, reply_to, model, tokens, runtime }, messageOut);
};

/** A finished message: stored, then said. Said again it is the same one; after its turn was ended without it, it is a late one. */
async function final(request: AgentRequest, context: Context, said: Final, out: (row: MessageRow) => OutFrame): Promise<AgentEffects> {
  const { tenant_id } = request;
  const { clock } = context;
  const room = await context.rooms.of(tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind === 'foreign') return {};
  const message_id = agentMessageId(namerOf(request), said.message_id);
  const running = scope.kind === 'open' ? scope.state.messages.find((one) => one.message_id === message_id) : undefined;
  const named = (said.media ?? []) as readonly { media_id: string }[];
  const media = named.length === 0 ? null : await shownMedia(request, named, 'attached', context);
  const row = messageRow(tenant_id, scope.lane, message_id, {
    role: running?.role ?? said.role,
    text: said.text,
    reasoning: said.reasoning ?? (running === undefined ? null : room.texts.get(message_id)?.reasoning || null),
    media,
    reply_to: await replyTo(request, said.reply_to, context),
    model: said.model ?? null,
    tokens: said.tokens ?? null,
    runtime: runtimeOf(running?.role ?? said.role, said),
    ts: clock.now(),
    own_id: said.message_id,
    turn_id: scope.kind === 'open' ? scope.state.turn_id : scope.kind === 'ended' ? scope.row.turn_id : null,
    idempotency_key: request.frame.turn_id === undefined ? null : finalMark(request.frame.turn_id, running?.role ?? said.role, said.text),
  });
  const stored = scope.kind === 'ended' ? await storeLate(row, scope, context) : await storeFinal(row, running !== undefined, context);
  // What devices have not seen begin comes whole.
  const finished =
    stored === undefined || isPlaced(stored, context)
      ? {}
      : { frames: [running === undefined || stored.late ? messageOut(stored) : out(stored)] };
  if (scope.kind !== 'open' || running === undefined) return finished;
  const next: TurnState = { ...scope.state, messages: scope.state.messages.filter((one) => one !== running) };
  return mergeEffects([
    becomes(room, next),
    { ...finished, values: { [textKey(message_id)]: null }, know: () => void room.texts.delete(message_id) },
  ]);
}

/** It stands in the order, or stood there before the outbox was lost: not again. A late final has its message's place, and comes all the same. */
const isPlaced = (row: MessageRow, { emitter }: Context): boolean =>
  !row.late && (row.cursor !== null || emitter.placeOf(row.message_id) !== undefined);

/** On every final of an assistant, with what is known. */
const runtimeOf = (role: MessageRow['role'], { model, runtime }: Final): MessageRow['runtime'] =>
  role !== 'assistant' && runtime === undefined ? null : { ...(model === undefined ? {} : { model }), ...runtime };

/** The row as it stands; undefined when it was deleted, or is another message of the turn said again. */
async function storeFinal(row: MessageRow, started: boolean, { store }: Context): Promise<MessageRow | undefined> {
  const insert = async (one: MessageRow) => (await store.messages.insert([{ message: one }]))[0]!;
  let stored = await insert(row);
  if (stored === 'no_lane') throw notFound('chat_id');
  // Devices have seen it begin: it must end, whatever was said before it.
  if (started && typeof stored === 'object' && stored.row.message_id !== row.message_id)
    stored = await insert({ ...row, idempotency_key: null });
  return typeof stored === 'object' && stored.row.message_id === row.message_id ? stored.row : undefined;
}

/** A final of a turn that is over: it takes the place of what was cut short, or comes as a message of its own. */
async function storeLate(row: MessageRow, scope: Extract<Scope, { kind: 'ended' }>, context: Context): Promise<MessageRow | undefined> {
  const { store } = context;
  const before = await store.messages.get(row.tenant_id, row.message_id);
  if (before !== undefined) {
    if (!before.interrupted) return before;
    return store.messages.replace({ ...row, ts: before.ts, interrupted: false, late: true });
  }
  return storeFinal({ ...row, late: scope.row.outcome !== 'completed' }, false, context);
}

/** Agents answer to messages by our id or by their own. One that is gone is left out: the answer is worth more than what it hangs on. */
async function replyTo(request: AgentRequest, reply_to: string | null | undefined, { store }: Context): Promise<MessageId | null> {
  if (reply_to === undefined || reply_to === null) return null;
  for (const id of [reply_to as MessageId, agentMessageId(namerOf(request), reply_to)])
    if ((await store.messages.get(request.tenant_id, id)) !== undefined) return id;
  return null;
}

export const commentary: Handler<'commentary'> = async (request, context) => {
  const { message_id: own_id, text } = request.frame.payload;
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind === 'foreign' || scope.kind === 'ended') return {};
  const message_id = agentMessageId(namerOf(request), own_id);
  if (request.deleted.has(message_id)) return {};
  return { frames: [durableFrame(laneFrame('commentary', scope.lane, { message_id, text }), { key: `commentary:${message_id}` })] };
};

export const messageDelete: Handler<'message.delete'> = async (request, context) => {
  const room = await context.rooms.of(request.tenant_id);
  const scope = await scopeOf(request, room, context);
  if (scope.kind === 'foreign') return {};
  const asked = request.frame.payload.message_ids as MessageId[];
  const known = await context.store.messages.places(request.tenant_id, asked.filter(isMessageId));
  // Ours, as `turn.start` gave it, or the agent's own name of one of its messages.
  const ids = asked.map((id) => (known.has(id) ? id : agentMessageId(namerOf(request), id)));
  return deleteMessages(request.tenant_id, scope.lane, ids, { key: request.key, room, agents: false }, context);
};

/**
 * Messages go, finished or running, with everything that would bring them back.
 * @param options.agents whether the agents are told
 */
export async function deleteMessages(
  tenant_id: AgentRequest['tenant_id'],
  lane: Lane,
  asked: readonly MessageId[],
  options: { key: string; room: Room; agents: boolean },
  { store, clock, directory, turns }: Context,
): Promise<AgentEffects> {
  const { room } = options;
  const standing = await store.messages.places(tenant_id, asked.filter(isMessageId));
  const running = new Map([...room.turns.values()].flatMap((turn) => turn.messages.map(({ message_id }) => [message_id, turn] as const)));
  // One that stands or runs in another lane is not this lane's to delete, nor to be named here.
  const isElsewhere = (id: MessageId) => {
    const at = standing.get(id) ?? running.get(id);
    return at !== undefined && laneKey(at) !== laneKey(lane);
  };
  const message_ids = [...new Set(asked)].filter((id) => !isElsewhere(id));
  // Only what can be ours: other names are listed, and that is all.
  const ours = message_ids.filter(isMessageId);
  const frame = laneFrame('message.deleted', lane, { message_ids });
  const gone = new Set<MessageId>(message_ids);
  const changed = [...room.turns.values()].filter(({ messages }) => messages.some(({ message_id }) => gone.has(message_id)));
  // The agent's own names are known only while the messages stand: its word is stored first.
  const own_ids = Object.fromEntries([
    ...ours.flatMap((id) => (typeof standing.get(id)?.own_id === 'string' ? [[id, standing.get(id)!.own_id] as const] : [])),
    ...changed.flatMap(({ messages }) =>
      messages.flatMap(({ message_id, own_id }) => (gone.has(message_id) ? [[message_id, own_id] as const] : [])),
    ),
  ]);
  const told = { ...frame, payload: { message_ids, ...(Object.keys(own_ids).length === 0 ? {} : { own_ids }) } };
  const agent = options.agents ? await tellAgents(tenant_id, told, `deleted:${options.key}`, { store, directory }) : [];
  await store.messages.remove(tenant_id, lane, ours, clock.now());
  const over = await turns.takeBack(tenant_id, lane, ours);
  return mergeEffects([
    ...changed.map((state) => becomes(room, { ...state, messages: state.messages.filter(({ message_id }) => !gone.has(message_id)) })),
    {
      forget: ours.length === 0 ? [] : [{ message_ids: ours }],
      frames: [durableFrame(frame, { key: `deleted:${options.key}` })],
      values: Object.fromEntries(message_ids.filter((id) => room.texts.has(id)).map((id) => [textKey(id), null])),
      know() {
        for (const id of message_ids) room.texts.delete(id);
      },
      agent,
    },
    over,
  ]);
}
