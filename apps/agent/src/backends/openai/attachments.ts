import type { MediaEntry } from '@iris/agent-link';
import type { Log } from '@iris/runtime';
import { bytesOf, type Http } from '../../http/http.js';
import type { ContentPart } from './endpoint.js';

export interface Attached {
  readonly parts: readonly ContentPart[];
  /** What of it the model does not get to see, for the person. */
  readonly notes: readonly string[];
}

const image_bytes_max = 20 * 1024 * 1024;
const text_bytes_max = 64 * 1024;
const imageMime = /^image\/(png|jpeg|webp|gif)$/i;
const textMime = /^(text\/|application\/(json|xml|x-yaml|yaml|toml|javascript|sql)\b)/i;

/** Files as a model can take them: images as data, short texts as text; of the rest it is told that it was there. */
export async function attachments(
  media: readonly MediaEntry[],
  { http, signal, log }: { http: (url: string, signal: AbortSignal) => ReturnType<Http>; signal: AbortSignal; log: Log },
): Promise<Attached> {
  const parts: ContentPart[] = [];
  const notes: string[] = [];
  const miss = (entry: MediaEntry, why: string) => {
    parts.push({ type: 'text', text: `[The person sent ${named(entry)}, which you cannot see.]` });
    notes.push(`I can't see ${named(entry)}: ${why}.`);
  };
  for (const entry of media) {
    const image = imageMime.test(entry.mime);
    const max = image ? image_bytes_max : text_bytes_max;
    if (!image && !textMime.test(entry.mime)) miss(entry, `${entry.mime} is nothing that I can read`);
    else if (entry.url === undefined) miss(entry, 'the gateway gives me no files');
    else if (entry.size > max) miss(entry, 'it is too large');
    else {
      try {
        const answer = await http(entry.url, signal);
        const { bytes, whole } = await bytesOf(answer, max);
        if (answer.status !== 200) throw new Error(`HTTP ${answer.status}`);
        if (!whole) miss(entry, 'it is too large');
        else if (image) {
          const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
          parts.push({ type: 'image_url', image_url: { url: `data:${entry.mime.toLowerCase()};base64,${data}` } });
        } else parts.push({ type: 'text', text: `[${named(entry)}]\n${new TextDecoder().decode(bytes)}` });
      } catch (error) {
        if (signal.aborted) throw error;
        log.warn('agent.media_unread', { media_id: entry.media_id, error });
        miss(entry, 'the gateway could not give it to me');
      }
    }
  }
  return { parts, notes };
}

const named = ({ kind, filename }: MediaEntry): string => filename ?? `${kind === 'image' || kind === 'audio' ? 'an' : 'a'} ${kind}`;
