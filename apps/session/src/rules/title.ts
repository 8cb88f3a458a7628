import { firstCodePoints } from '@iris/protocol';
import { keptName } from './names.js';

const titleMax = 60;
/** What a thread is called whose message has no word in it. */
const untitled = 'New thread';

/** The instant title of an auto-thread: the first line with words in it, without markup, cut at a word. */
export function derivedTitle(text: string): string {
  for (const line of text.split(/\r\n|[\n\r\u2028\u2029]/)) {
    const plain = withoutMarkup(line);
    if (!/[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(plain)) continue;
    try {
      return cutAtWord(keptName(firstCodePoints(plain, 128)));
    } catch {
      // Nothing visible is left of it: the next line may have more.
    }
  }
  return untitled;
}

function withoutMarkup(line: string): string {
  return line
    .replace(/^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+|\d+[.)]\s+|`{3,}\S*)+/, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<\/?[a-zA-Z][^>]*>/g, '')
    .replace(/(\*\*|__|~~|`+)(.+?)\1/g, '$2')
    .replace(/(^|[\s(])([*_])(\S(?:.*?\S)?)\2(?=$|[\s).,;:!?])/g, '$1$3')
    .replace(/\s+/g, ' ')
    .trim();
}

function cutAtWord(text: string): string {
  const head = firstCodePoints(text, titleMax);
  if (head === text || /^\s/.test(text.slice(head.length))) return head.trimEnd();
  const at = head.search(/\s\S*$/);
  if (at > 0) return head.slice(0, at).trimEnd();
  // A line without spaces, as in Chinese or Japanese, is cut between characters; of one that is many code points nothing is split off.
  let end = 0;
  for (const { index, segment } of characters.segment(text)) {
    if (index + segment.length > head.length) break;
    end = index + segment.length;
  }
  return head.slice(0, end === 0 ? head.length : end);
}
const characters = new Intl.Segmenter('en', { granularity: 'grapheme' });
