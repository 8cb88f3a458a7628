import { Type } from 'typebox';
import { limits } from '../limits.js';

/** An id given by us or by a peer: opaque, bounded, any characters. */
export const Id = Type.String({ minLength: 1, maxLength: limits.id_length });
export const NullableId = Type.Union([Id, Type.Null()]);
export const CursorSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** Milliseconds since 1970, UTC. */
export const Timestamp = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const Ids = Type.Array(Id, { minItems: 1, maxItems: limits.ids_per_request });
export const Empty = Type.Object({});

export const Role = Type.Enum(['user', 'assistant', 'system', 'cron']);

export const MediaKind = Type.Enum(['image', 'video', 'audio', 'file']);
export const MediaEntry = Type.Object({
  media_id: Id,
  kind: MediaKind,
  mime: Type.String(),
  size: Type.Integer({ minimum: 0 }),
  filename: Type.Optional(Type.String()),
  sha256: Type.Optional(Type.String()),
  width: Type.Optional(Type.Integer()),
  height: Type.Optional(Type.Integer()),
  duration: Type.Optional(Type.Number()),
  thumbhash: Type.Optional(Type.String()),
  thumb_media_id: Type.Optional(Id),
  url: Type.Optional(Type.String()),
});

/** Runtime footer under final assistant messages; every key absent when not known. */
export const Runtime = Type.Object({
  model: Type.Optional(Type.String()),
  context_pct: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  cwd: Type.Optional(Type.String()),
  latency: Type.Optional(Type.Number()),
  cost: Type.Optional(Type.Number()),
});
