import type { MediaFound } from '@iris/bus';
import { RequestError } from '@iris/protocol';
import type { MediaRow } from '@iris/store';

/** A file as devices and agents are told of it. */
export function mediaEntry({ media_id, kind, mime, size, filename, sha256, details, processed }: MediaRow): MediaFound['entry'] {
  const { uploaded_size: _, withheld: __, ...shown } = details;
  // What its sender calls it is not trusted.
  if (!processed) return { media_id, kind: 'file', mime: 'application/octet-stream', size, filename, sha256 };
  return { ...shown, media_id, kind, mime, size, filename, sha256 };
}

/**
 * What may say where it was taken, and is too large for that to be taken out, is given to nobody.
 * @throws RequestError `media_too_large`
 */
export function insistShown({ details }: MediaRow): void {
  if (details.withheld === true)
    throw new RequestError('media_too_large', 'size: too large to be cleaned of what it tells of place and time');
}

/** The files that a row brings along: itself, and its preview. */
export const mediaIdsOf = ({ media_id, details }: MediaRow): string[] =>
  typeof details.thumb_media_id === 'string' ? [media_id, details.thumb_media_id] : [media_id];
