import type { MediaFound } from '@iris/bus';
import type { MediaRow } from '@iris/store';

/** A file as devices and agents are told of it. */
export function mediaEntry({ media_id, kind, mime, size, filename, sha256, details, processed }: MediaRow): MediaFound['entry'] {
  const { uploaded_size: _, ...shown } = details;
  // What its sender calls it is not trusted.
  if (!processed) return { media_id, kind: 'file', mime: 'application/octet-stream', size, filename, sha256 };
  return { ...shown, media_id, kind, mime, size, filename, sha256 };
}

/** The files that a row brings along: itself, and its preview. */
export const mediaIdsOf = ({ media_id, details }: MediaRow): string[] =>
  typeof details.thumb_media_id === 'string' ? [media_id, details.thumb_media_id] : [media_id];
