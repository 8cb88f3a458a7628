/** Where one character, as it is seen, ends and another begins. */

const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' });
/** Segmenting copies its text for each segment, so only a little of it is given. */
const around = 48;
const joins = /^(?:\p{M}|\p{RI}|\p{Emoji_Modifier}|\u200d|[\u{e0020}-\u{e007f}])$/u;

/** From and to, of what never joins its like: most of what is written, and a hundred times cheaper than asking for segments. */
const plainRanges = [
  [0x20, 0x2ff],
  [0x370, 0x482],
  [0x48a, 0x52f],
  [0x5d0, 0x5ea],
  [0x61e, 0x64a],
  [0x2010, 0x2027],
  [0x3000, 0x3029],
  [0x3041, 0x3096],
  [0x309b, 0x30ff],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0xff01, 0xff9d],
] as const;

/** Whether a UTF-16 unit is a character of those. */
export const isPlain = (unit: number): boolean =>
  unit <= 0x2ff ? unit >= 0x20 : plainRanges.some(([from, to]) => unit >= from && unit <= to);

const isPlainBoundary = (text: string, at: number): boolean => isPlain(text.charCodeAt(at - 1)) && isPlain(text.charCodeAt(at));

/** The place `count` code points after `from`, or the end. */
export function pointsFrom(text: string, from: number, count: number): number {
  let at = from;
  for (let n = 0; n < count && at < text.length; n++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

/** The place `count` code points before `from`, or the beginning. */
export function pointsBack(text: string, from: number, count: number): number {
  let at = from;
  for (let n = 0; n < count && at > 0; n++) at -= at > 1 && (text.codePointAt(at - 2) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

/** Boundaries between characters near `at`, ascending. */
function boundaries(text: string, at: number): number[] {
  let from = pointsBack(text, at, around);
  // Begin where surely a character begins: not within a flag, a family or under a heap of marks.
  for (let n = 0; n < 4 * around && from > 0; n++) {
    const previous = pointsBack(text, from, 1);
    if (!joins.test(text.slice(from, pointsFrom(text, from, 1))) && !joins.test(text.slice(previous, from))) break;
    from = previous;
  }
  const to = pointsFrom(text, at, around);
  const places = [...segmenter.segment(text.slice(from, to))].map(({ index }) => from + index);
  return to === text.length ? [...places, to] : places;
}

export const isBoundary = (text: string, at: number): boolean => isPlainBoundary(text, at) || boundaries(text, at).includes(at);

/** The first boundary at or after `at`, at most `limit`; `at` when there is none near. */
export const characterFrom = (text: string, at: number, limit: number): number =>
  isPlainBoundary(text, at) ? at : (boundaries(text, at).find((place) => place >= at && place <= limit) ?? at);

/** The last boundary at or before `at` and after `limit`; `at` when there is none near. */
export const characterTo = (text: string, at: number, limit: number): number =>
  isPlainBoundary(text, at) ? at : (boundaries(text, at).findLast((place) => place <= at && place > limit) ?? at);
