import { type Static, Type } from 'typebox';
import { Id, MediaEntry, MediaKind } from './shared.js';

/** Hexadecimal, in either case; a wrong one is refused when the bytes are there. */
const Sha256 = Type.String({ maxLength: 128 });

/** `size` is a number here: zero and fractions are refused below, too large is `media_too_large`, which the quota decides. */
export const MediaUploadStart = Type.Object({
  media_ref: Id,
  kind: MediaKind,
  mime: Type.String({ minLength: 1, maxLength: 255 }),
  size: Type.Number(),
  filename: Type.Optional(Type.String({ maxLength: 8192 })),
  sha256: Type.Optional(Sha256),
  /** Go on with what is stored of this `media_ref`: answered with how much that is, and may be gone on with later. */
  resume: Type.Optional(Type.Boolean()),
  /** The bytes come by HTTP: answered with where to. It can always be gone on with. */
  link: Type.Optional(Type.Boolean()),
});
export const MediaUploadOffset = Type.Object({
  media_ref: Id,
  offset: Type.Integer({ minimum: 0 }),
  /** Where the bytes are to be put, when `link` was asked for, and until when: milliseconds since 1970. */
  url: Type.Optional(Type.String()),
  expires_at: Type.Optional(Type.Integer({ minimum: 0 })),
});
export const refineMediaUploadStart = ({ size }: Static<typeof MediaUploadStart>): string | undefined =>
  Number.isInteger(size) && size >= 1 ? undefined : 'size: must be a whole number of bytes, at least 1';
export const MediaUploadEnd = Type.Object({ media_ref: Id, sha256: Type.Optional(Sha256) });
export const MediaUploadAck = Type.Object({ ok: Type.Literal(true), media_ref: Id, sha256: Sha256 });
export const MediaOffer = MediaEntry;
export const MediaPull = Type.Object({
  media_id: Id,
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  length: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
});
export const MediaPullAck = MediaEntry;
export const MediaPullEnd = Type.Object({ ok: Type.Boolean(), media_id: Id });
