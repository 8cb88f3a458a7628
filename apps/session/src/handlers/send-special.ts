import { durableFrame, notFound, rateLimited } from '@iris/protocol';
import type { ChannelRow, MediaRow, MessageRow, NewTurn } from '@iris/store';
import { receipt } from '../agent/turn-frames.js';
import type { Context, DeviceRequest } from '../context.js';
import type { Effects, StoredMessage } from '../emission.js';
import { mediaEntry, mediaIdsOf } from '../media/media-entry.js';
import { channelCreated } from '../rules/frames.js';
import { derivedTitle } from '../rules/title.js';
import { quotasOf, tellAgents } from './lookup.js';
import { answerPicker } from './picker-select.js';
import type { Plan } from './send-checks.js';

type Request = DeviceRequest<'message.send'>;

/** A send that makes a thread, brings files, or answers a question: more than one thing changes, so it is a step of its own. */
export async function sendSpecial(
  request: Request,
  plan: Plan,
  draft: { readonly message: MessageRow; readonly turn?: NewTurn; readonly key: string },
  { keep, echo }: { keep: (stored: StoredMessage) => MessageRow | 'stale'; echo: (row: MessageRow) => Effects },
  context: Context,
): Promise<Effects> {
  const { tenant_id } = request;
  const { store, directory } = context;
  const { key } = draft;
  const before = await store.messages.get(tenant_id, draft.message.message_id);
  const files = before === undefined ? await filesOf(request, plan.media_refs, context) : [];
  const thread = plan.auto_thread ? await threadFor(request, plan, key, context) : undefined;
  // Whoever answered first has answered: then this is a message like any other.
  const answered = plan.clarify === undefined ? undefined : await answerPicker(plan.clarify, plan.text, key, context);
  const message: MessageRow = {
    ...draft.message,
    ...(thread === undefined ? {} : { chat_id: thread.chat_id, thread_id: thread.thread_id }),
    media: files.length === 0 ? null : files.map(mediaEntry),
  };
  const turn = answered === undefined && draft.turn !== undefined ? { turn: draft.turn } : {};
  // Before the message, so that there is none when another one has them already; under its key, so that a retry has them again.
  const media_ids = files.flatMap(mediaIdsOf);
  if (media_ids.length > 0 && !(await store.media.attach(tenant_id, media_ids, key))) throw notFound('media_refs');
  const stored = (await store.messages.insert([{ message, ...turn }]))[0]!;
  if (typeof stored === 'string') await store.media.remove(tenant_id, media_ids);
  const row = keep(stored);
  if (row === 'stale') return {};
  const said = echo(row);
  const created = thread === undefined ? undefined : channelCreated(thread);
  const before_it = [
    ...(created === undefined ? [] : [durableFrame(created, { key: `created:${thread!.chat_id}:${thread!.thread_id}` })]),
    ...(answered?.frames ?? []),
  ];
  return {
    // A send that comes again was said with all of it: the answer is its echo, and nothing else.
    frames: said.frames === undefined ? [] : [...before_it, ...said.frames],
    ...(said.answer === undefined ? {} : { answer: said.answer }),
    // The agent has it, as an answer: no turn of its own will say so.
    live: answered === undefined ? [] : await receipt(tenant_id, row, row.message_id, context),
    agent: [
      ...(created === undefined ? [] : await tellAgents(tenant_id, { ...created }, `created:${thread!.thread_id}`, context)),
      ...(answered?.agent ?? []),
    ],
    know() {
      answered?.know?.();
      if (thread !== undefined) directory.changed(tenant_id, 'channels');
    },
  };
}

async function threadFor(request: Request, plan: Plan, key: string, context: Context): Promise<ChannelRow> {
  const { tenant_id } = request;
  const made = await context.store.channels.create({
    tenant_id,
    chat_id: plan.lane.chat_id,
    name: derivedTitle(plan.text),
    auto: true,
    idempotency_key: `${key}:thread`,
    max: (await quotasOf(tenant_id, context)).channels,
    at: context.clock.now(),
  });
  if (made === 'no_channel') throw notFound('chat_id');
  if (made === 'over_quota') throw rateLimited('no more threads', 60_000);
  return made.row;
}

/** The uploads that the refs name. @throws RequestError `not_found` for one that is unknown, another device's, or not complete */
async function filesOf(request: Request, refs: readonly string[], { store, mediaReady, config }: Context): Promise<MediaRow[]> {
  const files: MediaRow[] = [];
  for (const ref of refs) {
    const file = await store.media.byRef(request.tenant_id, request.device_id, ref);
    if (file === undefined || file.state === 'uploading' || file.state === 'unused') throw notFound('media_refs');
    files.push((await mediaReady.processed(file, config.media_ready_ms / 2)) ?? file);
  }
  return files;
}
