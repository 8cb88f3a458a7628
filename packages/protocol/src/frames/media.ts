import { Type } from 'typebox';
import { Id, MediaEntry, MediaKind } from './shared.js';

/** `size` is checked by rule, not by schema: zero is `unsupported`, too large is `media_too_large`. */
export const MediaUploadStart = Type.Object({
  media_ref: Id,
  kind: MediaKind,
  mime: Type.String({ minLength: 1, maxLength: 255 }),
  size: Type.Number(),
  filename: Type.Optional(Type.String({ maxLength: 8192 })),
  sha256: Type.Optional(Type.String()),
  resume: Type.Optional(Type.Boolean()),
});
export const MediaUploadEnd = Type.Object({ media_ref: Id, sha256: Type.Optional(Type.String()) });
export const MediaUploadAck = Type.Object({ ok: Type.Literal(true), media_ref: Id, sha256: Type.Optional(Type.String()) });
export const MediaOffer = MediaEntry;
export const MediaPull = Type.Object({
  media_id: Id,
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  length: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
});
export const MediaPullAck = MediaEntry;
export const MediaPullEnd = Type.Object({ ok: Type.Boolean(), media_id: Id });
