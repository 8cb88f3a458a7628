import type { OutboxEntry } from '@iris/outbox';
import { type ChatId, laneKey, type ThreadId } from '@iris/protocol';
import type { Told } from './connection.js';

interface LaneFrame {
  readonly type: string;
  readonly chat_id?: ChatId;
  readonly thread_id?: ThreadId | null;
  readonly payload: { readonly message_id?: string; readonly picker_id?: string };
}
const laneOf = ({ chat_id, thread_id }: LaneFrame): string =>
  chat_id === undefined ? '' : laneKey({ chat_id, thread_id: thread_id ?? null });

/** What a device learns from the frames after `hello.ack`; undefined when nothing is going on. */
export function toldBy(frames: readonly string[]): Told | undefined {
  const message_ids = new Set<string>();
  const picker_ids = new Set<string>();
  const busy = new Set<string>();
  for (const text of frames) {
    const frame = JSON.parse(text) as LaneFrame;
    if (frame.type === 'message.start' && frame.payload.message_id !== undefined) message_ids.add(frame.payload.message_id);
    else if (isPicker(frame.type) && frame.payload.picker_id !== undefined) picker_ids.add(frame.payload.picker_id);
    else if (frame.type === 'agent.busy') busy.add(laneOf(frame));
  }
  return message_ids.size + picker_ids.size + busy.size === 0 ? undefined : { message_ids, picker_ids, busy };
}

const isPicker = (type: string): boolean => type.startsWith('picker.') && type !== 'picker.closed';

const frameIn = (body: Uint8Array): LaneFrame => JSON.parse(Buffer.from(body).toString()) as LaneFrame;

/** Whether a replayed frame says what the device was told. Of a lane's busy and idle a replay has the last alone, so a busy one is the one that was told. */
export function isTold(told: Told | undefined, { type, message_id, body }: OutboxEntry): boolean {
  if (told === undefined) return false;
  if (type === 'message.start') return message_id !== undefined && told.message_ids.has(message_id);
  if (isPicker(type)) return told.picker_ids.size > 0 && told.picker_ids.has(frameIn(body).payload.picker_id ?? '');
  return type === 'agent.busy' && told.busy.size > 0 && told.busy.has(laneOf(frameIn(body)));
}
