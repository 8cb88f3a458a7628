import { type Lane, laneKey, notFound, rateLimited } from '@iris/protocol';
import type { MessageRow, PickerRow } from '@iris/store';
import type { Context, DeviceRequest } from '../context.js';
import { type CatalogEntry, commandWord, isCommand, isStop } from '../rules/command.js';
import { takesText } from '../rules/picker-value.js';
import { laneIn, quotasOf } from './lookup.js';
import { isOpen } from './picker-select.js';

/** What a `message.send` is, once everything it names was found. */
export interface Plan {
  readonly lane: Lane;
  readonly text: string;
  readonly kind: 'chat' | 'command' | 'stop';
  readonly reply_to: MessageRow['reply_to'];
  readonly media_refs: readonly string[];
  readonly auto_thread: boolean;
  /** The open question that it answers. */
  readonly clarify: PickerRow | undefined;
}

/** All that is checked before anything is stored; the schema has seen to text, sizes and blanks. @throws RequestError */
export async function checkSend(request: DeviceRequest<'message.send'>, context: Context): Promise<Plan> {
  const { tenant_id, frame } = request;
  const { payload } = frame;
  const quotas = await quotasOf(tenant_id, context);
  const lane = await laneIn(tenant_id, frame, context);
  const text = payload.text ?? '';
  const reply_to = (payload.reply_to ?? null) as MessageRow['reply_to'];
  if (reply_to !== null) await checkReply(request, reply_to, context);
  const agent = await context.directory.agentOf(tenant_id, lane);
  const kind = isStop(text) ? 'stop' : isCommand(text, (agent?.commands ?? []) as unknown as readonly CatalogEntry[]) ? 'command' : 'chat';
  const spoken = kind === 'chat' && text.trim() !== '';
  const auto_thread = spoken && payload.auto_thread === true && lane.thread_id === null && commandWord(text) === undefined;
  const clarify = spoken && !auto_thread ? await openQuestion(tenant_id, lane, context) : undefined;
  // In a thread of its own nothing waits before it.
  const waits = kind !== 'stop' && clarify === undefined && !auto_thread;
  if (waits && !(await context.turns.mayWait(tenant_id, lane, quotas.waiting_per_lane)))
    throw rateLimited('too many messages wait in this lane', retryLane_ms);
  return { lane, text, kind, reply_to, media_refs: [...new Set(payload.media_refs ?? [])], auto_thread, clarify };
}

export const retryLane_ms = 5_000;

async function openQuestion(tenant_id: DeviceRequest['tenant_id'], lane: Lane, context: Context): Promise<PickerRow | undefined> {
  const { pickers } = await context.rooms.of(tenant_id);
  if (pickers.size === 0) return undefined;
  return [...pickers.values()].find((row) => laneKey(row) === laneKey(lane) && takesText(row.type, row.payload) && isOpen(row, context));
}

/** One that is still being written can be answered too. */
async function checkReply(
  { tenant_id }: DeviceRequest<'message.send'>,
  reply_to: NonNullable<MessageRow['reply_to']>,
  { store, rooms }: Context,
): Promise<void> {
  if ((await store.messages.get(tenant_id, reply_to)) !== undefined) return;
  const { turns } = await rooms.of(tenant_id);
  if (![...turns.values()].some(({ messages }) => messages.some(({ message_id }) => message_id === reply_to))) throw notFound('reply_to');
}
