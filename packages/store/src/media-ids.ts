import type { MessageRow } from './rows.js';

/** The files that a message's media entries name, each once: the file itself and its preview. */
export function mediaIdsOf(media: MessageRow['media']): string[] {
  const ids = new Set<string>();
  for (const entry of media ?? []) {
    for (const id of [entry.media_id, entry.thumb_media_id]) if (typeof id === 'string') ids.add(id);
  }
  return [...ids];
}
