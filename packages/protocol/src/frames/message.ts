import { type Static, Type } from 'typebox';
import { limits } from '../limits.js';
import { exceedsBytes } from '../text.js';
import { Id, Ids, MediaEntry, NullableId, Role, Runtime, Timestamp } from './shared.js';

export const MessageSend = Type.Object({
  text: Type.Optional(Type.String()),
  reply_to: Type.Optional(NullableId),
  media_refs: Type.Optional(Type.Array(Id, { maxItems: limits.media_refs })),
  auto_thread: Type.Optional(Type.Boolean()),
  /** The app's own name for this send: the same one again within 24 h gets the first result. */
  client_ref: Type.Optional(Type.String({ minLength: 1, maxLength: limits.client_ref_length })),
});

/** Text within the limit; and something to say: text that is not blank, or media. */
export function refineMessageSend({ text = '', media_refs = [] }: Static<typeof MessageSend>): string | undefined {
  if (text.trim() === '' && media_refs.length === 0) return 'text: must not be blank without media_refs';
  return refineText({ text });
}

export const refineText = ({ text }: { text: string }): string | undefined =>
  exceedsBytes(text, limits.text_bytes) ? `text: must be at most ${limits.text_bytes} bytes of UTF-8` : undefined;

/** A finished message: live, in `sync`, and as a row of `history`. */
export const Message = Type.Object({
  message_id: Id,
  role: Role,
  text: Type.String(),
  reasoning: Type.Optional(Type.String()),
  media: Type.Optional(Type.Array(MediaEntry)),
  reply_to: Type.Optional(Id),
  model: Type.Optional(Type.String()),
  tokens: Type.Optional(Type.Integer({ minimum: 0 })),
  ts: Timestamp,
  runtime: Type.Optional(Runtime),
  client_ref: Type.Optional(Type.String()),
  steer: Type.Optional(Type.Boolean()),
  interrupted: Type.Optional(Type.Boolean()),
  late: Type.Optional(Type.Boolean()),
});

export const MessageStart = Type.Object({ message_id: Id, role: Role });
/** `text` is the whole text so far; the app replaces. */
export const MessageUpdate = Type.Object({ message_id: Id, text: Type.String() });
export const MessageDelta = Type.Object({
  message_id: Id,
  /** UTF-16 code units before `text`. */
  offset: Type.Integer({ minimum: 0 }),
  text: Type.String(),
});
export const ReasoningDelta = MessageDelta;
export const MessageStop = Type.Object({
  message_id: Id,
  final_text: Type.String(),
  reasoning: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  tokens: Type.Optional(Type.Integer({ minimum: 0 })),
  runtime: Type.Optional(Runtime),
  media: Type.Optional(Type.Array(MediaEntry)),
  /** Milliseconds; the same `ts` that `history` gives. */
  ts: Type.Optional(Timestamp),
  interrupted: Type.Optional(Type.Boolean()),
});

export const MessageDelete = Type.Object({ message_ids: Ids });
export const MessageDeleted = Type.Object({ message_ids: Type.Array(Id) });
export const Commentary = Type.Object({ message_id: Id, text: Type.String() });

/** Without an envelope `chat_id`, the payload may carry it. */
export const ReadReceiptUp = Type.Object({ message_id: Id });
export const ReadReceiptDown = Type.Object({ message_id: Id, device_id: Type.Optional(Id) });
