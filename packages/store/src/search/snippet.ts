import { limits } from '@iris/protocol';
import { characterFrom, characterTo, isBoundary, pointsBack, pointsFrom } from './graphemes.js';
import type { SearchQuery, Term } from './query.js';
import { type Folding, foldingOf } from './search-text.js';

/** Code points shown before the match, where there are as many. */
const before = 40;
/** A cut moves up to this many code points so as to fall between words. */
const toWord = 16;
const dots = '…';
/** Folded at first; a match is often near the beginning. */
const stepUnits = 256;

/**
 * At most 160 code points of the message's own text, around the first place that matches as well as the message does (`rank`, see
 * {@link rankOf}). No character that is seen as one is cut, be it made of many code points, unless it alone is too long.
 */
export function snippetOf(text: string, query: SearchQuery, rank: number): string {
  const most = limits.snippet_code_points;
  if (text.length <= most || pointsFrom(text, 0, most) === text.length) return text;
  const at = firstMatch(foldingOf(text), formsOf(query, rank));
  let start = pointsBack(text, at, before);
  if (start > 0) start = betweenWords(text, start, at) ?? characterFrom(text, start, at);
  // Near the end, what is not needed after the match is shown before it.
  const last = pointsBack(text, text.length, most - 1);
  if (start > last) start = characterFrom(text, last, text.length);
  const room = most - (start > 0 ? 1 : 0);
  if (pointsFrom(text, start, room) === text.length) return `${start > 0 ? dots : ''}${text.slice(start)}`;
  let end = pointsFrom(text, start, room - 1);
  const words = text.slice(pointsBack(text, end, toWord), end).search(/\s\S*$/u);
  if (words >= 0 && pointsBack(text, end, toWord) + words > at) end = pointsBack(text, end, toWord) + words;
  end = characterTo(text, end, Math.max(at, start));
  return `${start > 0 ? dots : ''}${text.slice(start, end)}${dots}`;
}

function formsOf({ all, joined }: SearchQuery, rank: number): string[] {
  if (rank === 0 && joined) return [joined.whole];
  const form: keyof Term = rank <= 1 ? 'whole' : rank === 2 ? 'start' : 'part';
  return all.map((term) => term[form]);
}

/** Where in the original the first of the forms begins; its beginning when none is there. */
function firstMatch(folding: Folding, forms: readonly string[]): number {
  const longest = Math.max(0, ...forms.map((form) => form.length));
  let from = 0;
  for (let until = stepUnits; ; until *= 2) {
    folding.advance(until);
    const folded = folding.textFrom(from);
    const places = forms.map((form) => folded.indexOf(form)).filter((place) => place >= 0);
    if (places.length > 0) return folding.originOf(from + Math.min(...places));
    if (folding.done) return 0;
    from = Math.max(from, folding.length - longest);
  }
}

/** The beginning of a word shortly after `start`. */
function betweenWords(text: string, start: number, at: number): number | undefined {
  const gap = /\s+(?=\S)/u.exec(text.slice(start, Math.min(at, pointsFrom(text, start, toWord))));
  if (!gap) return undefined;
  const place = start + gap.index + gap[0].length;
  return isBoundary(text, place) ? place : undefined;
}
