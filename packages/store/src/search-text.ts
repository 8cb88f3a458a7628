import { firstCodePoints } from '@iris/protocol';

const marks = /\p{M}+/gu;

/** Text as it is compared in a search: without accents, without case, compatibility forms made equal. */
export const foldText = (text: string): string => text.normalize('NFKD').replace(marks, '').toLowerCase();

/** What a query asks for, folded: every one of `all` occurs, and none of `none`. */
export interface SearchQuery {
  readonly all: readonly string[];
  readonly none: readonly string[];
}

const term = /(-?)(?:"([^"]*)"?|(\S+))/gu;

/** Words, "quoted phrases" and -excluded ones. Any text is a query; one that asks for nothing finds nothing. */
export function parseQuery(text: string): SearchQuery {
  const all = new Set<string>();
  const none = new Set<string>();
  for (const [, minus, phrase, word] of text.matchAll(term)) {
    const folded = foldText(phrase ?? word ?? '').trim();
    if (folded !== '') (minus === '-' ? none : all).add(folded);
  }
  return { all: [...all], none: [...none] };
}

export const matches = (query: SearchQuery, folded: string): boolean =>
  query.all.length > 0 && query.all.every((word) => folded.includes(word)) && !query.none.some((word) => folded.includes(word));

const snippetCodePoints = 160;
const before = 40;

/** At most 160 code points of `text` around the first of the query's words that occurs. */
export function snippetOf(text: string, query: SearchQuery): string {
  const points = [...text];
  if (points.length <= snippetCodePoints) return text;
  const first = query.all[0] ?? '';
  const at = codePointAt(points, first);
  if (at <= before) return `${firstCodePoints(text, snippetCodePoints - 1)}…`;
  const start = Math.min(at - before, points.length - (snippetCodePoints - 2));
  const end = start + snippetCodePoints - 2;
  return `…${points.slice(start, end).join('')}${end < points.length ? '…' : ''}`;
}

/** Where the folded word begins in the unfolded text. Folding changes lengths, so code points are folded one by one. */
function codePointAt(points: readonly string[], word: string): number {
  const offsets: number[] = [];
  let folded = '';
  points.forEach((point, index) => {
    const piece = foldText(point);
    folded += piece;
    for (let i = 0; i < piece.length; i++) offsets.push(index);
  });
  const at = folded.indexOf(word);
  return at < 0 ? 0 : (offsets[at] ?? 0);
}
