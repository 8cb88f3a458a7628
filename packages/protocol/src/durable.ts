import { encode } from './encode.js';
import type { DownFrame } from './frame.js';
import { rowOf } from './frame-table.js';
import { type DeviceId, laneKey, type MessageId, type PickerId } from './ids.js';

/** A durable frame as the outbox takes it: its bytes, made once, and what the frame table says about it. */
export interface DurableFrame {
  readonly body: Uint8Array;
  readonly type: string;
  /** The same key again is the same frame. */
  readonly key: string;
  readonly message_ids?: readonly string[];
  readonly lane?: string;
  readonly supersedes?: string;
  readonly except_device_id?: DeviceId;
  readonly push: boolean;
  /** What the push would be about, when it is worth one and belongs to a lane. */
  readonly alert?: Alert;
}

/** Why a phone may buzz, and where the words for it are. */
export interface Alert {
  readonly class: 'reply' | 'cron' | 'failure' | 'picker' | 'notification';
  readonly message_id?: MessageId;
  readonly picker_id?: PickerId;
  /** Of a notification, which is nowhere else. */
  readonly title?: string;
  readonly body?: string;
}

/** Frames that are about one message, and go when it is deleted. */
const ofMessage: ReadonlySet<string> = new Set(['message', 'message.start', 'message.stop', 'commentary', 'read.receipt']);

/**
 * @param frame without `id` and `cursor`, of a durable type
 * @param options.role whose message it is, where the payload does not say
 * @param options.failure it says that a turn failed
 * @param options.ends what is over with it, so that nothing live about it is shown any more; a message's end says so itself
 */
export function durableFrame(
  frame: DownFrame,
  options: { key: string; role?: string; except_device_id?: DeviceId; ends?: string; failure?: boolean },
): DurableFrame {
  const down = rowOf(frame.type)?.down;
  if (down?.class !== 'durable') throw new TypeError(`${frame.type} is not durable`);
  const payload = frame.payload as { message_id?: string; picker_id?: string; device_id?: string; role?: string };
  const lane = frame.chat_id === undefined ? undefined : laneKey({ chat_id: frame.chat_id, thread_id: frame.thread_id ?? null });
  const message_ids =
    options.ends !== undefined ? [options.ends] : ofMessage.has(frame.type) && payload.message_id !== undefined ? [payload.message_id] : [];
  const supersedes = supersededBy(down.key, lane, payload);
  const role = options.role ?? payload.role ?? '';
  const push = down.push === 'always' || (down.push === 'final' && (pushedRoles.has(role) || options.failure === true));
  return {
    body: encode(frame),
    type: frame.type,
    key: options.key,
    ...(message_ids.length > 0 ? { message_ids } : {}),
    // That a lane is gone is all that stays of it.
    ...(lane === undefined || frame.type === 'channel.deleted' ? {} : { lane }),
    ...(supersedes === undefined ? {} : { supersedes }),
    ...(options.except_device_id === undefined ? {} : { except_device_id: options.except_device_id }),
    push,
    ...(push && lane !== undefined
      ? { alert: alertOf(frame, options.failure === true ? 'failure' : role === 'cron' ? 'cron' : 'reply') }
      : {}),
  };
}

function alertOf(frame: DownFrame, said: Alert['class']): Alert {
  const { message_id, picker_id, title, body } = frame.payload as Omit<Alert, 'class'>;
  if (picker_id !== undefined) return { class: 'picker', picker_id };
  if (frame.type === 'notification') return { class: 'notification', title: title ?? '', body: body ?? '' };
  return { class: said, ...(message_id === undefined ? {} : { message_id }) };
}

const pushedRoles: ReadonlySet<string> = new Set(['assistant', 'cron']);

function supersededBy(
  key: string | undefined,
  lane: string | undefined,
  { picker_id, device_id = '' }: { readonly picker_id?: string; readonly device_id?: string },
): string | undefined {
  if (key === 'picker') return picker_id === undefined ? undefined : `picker:${picker_id}`;
  if (lane === undefined) return undefined;
  if (key === 'lane_activity') return `activity:${lane}`;
  if (key === 'lane_receipt') return `receipt:${lane}:${device_id}`;
  return undefined;
}
