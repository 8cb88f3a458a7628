import { type DurableFrame, durableFrame } from './durable.js';
import type { DownFrameOf } from './frame.js';
import type { DownPayload } from './frame-table.js';
import type { Lane, MessageId } from './ids.js';

/** A finished message, as the store's row has it; null stands for what it does not have. */
export interface FinishedMessage extends Lane {
  readonly message_id: MessageId;
  readonly role: 'user' | 'assistant' | 'system' | 'cron';
  readonly text: string;
  readonly reasoning: string | null;
  readonly media: readonly unknown[] | null;
  readonly reply_to: MessageId | null;
  readonly model: string | null;
  readonly tokens: number | null;
  readonly runtime: Record<string, unknown> | null;
  readonly ts: number;
  readonly client_ref: string | null;
  readonly idempotency_key: string | null;
  readonly steer: boolean;
  readonly interrupted: boolean;
  readonly late: boolean;
}

/** The one shape of a finished message: live, replayed by `sync`, and as a row of `history`. */
export function messagePayload(row: FinishedMessage): DownPayload<'message'> {
  return {
    message_id: row.message_id,
    role: row.role,
    text: row.text,
    ...(row.reasoning === null ? {} : { reasoning: row.reasoning }),
    ...(row.media === null || row.media.length === 0 ? {} : { media: row.media as NonNullable<DownPayload<'message'>['media']> }),
    ...(row.reply_to === null ? {} : { reply_to: row.reply_to }),
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.tokens === null ? {} : { tokens: row.tokens }),
    ts: row.ts,
    ...(row.runtime === null ? {} : { runtime: row.runtime }),
    ...(row.client_ref === null ? {} : { client_ref: row.client_ref }),
    ...(row.steer ? { steer: true } : {}),
    ...(row.interrupted ? { interrupted: true } : {}),
    ...(row.late ? { late: true } : {}),
  };
}

export function messageFrame(row: FinishedMessage): DownFrameOf<'message'> {
  return { type: 'message', chat_id: row.chat_id, thread_id: row.thread_id, payload: messagePayload(row) };
}

/**
 * The append key of a message's final frame, `message` or `message.stop` alike: whoever appends it, the emitter or the
 * repair after a crash, it stands in the outbox once. A late final is a second one of the same message.
 */
export const finalKey = (row: { readonly message_id: MessageId; readonly late: boolean }): string =>
  row.late ? `late:${row.message_id}` : `final:${row.message_id}`;

/** The idempotency key of the message that says that a turn failed; whoever appends it knows by this that it is worth a push. */
export const failedKey = (turn_id: string): string => `failed:${turn_id}`;
const isFailure = ({ role, idempotency_key }: FinishedMessage): boolean =>
  role === 'system' && idempotency_key !== null && idempotency_key.startsWith(failedKey(''));

/** A finished message as it goes into the outbox, by whoever appends it. */
export const durableMessage = (row: FinishedMessage): DurableFrame =>
  durableFrame(messageFrame(row), { key: finalKey(row), failure: isFailure(row) });
