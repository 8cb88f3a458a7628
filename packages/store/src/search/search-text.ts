import { clusterAt } from './fold.js';
import { isAlphabetic, isSign, kindOf, space } from './letters.js';

/**
 * Text of a message as it is stored for search: folded, and with exactly one space at each end of a word of an alphabet, also where the
 * text itself begins or ends. Between characters of scripts without spaces there is none. So a word is found by `position(' word ')`, whatever the locale of
 * the database, and a part of one by `position('wor')`: `"Deploy, now! 今天 天气"` is `" deploy , now ! 今天天气"`.
 */
export function searchText(text: string): string {
  const folding = foldingOf(text);
  folding.advance(text.length);
  return folding.textFrom(0);
}

export interface Folding {
  /** Goes on to at least `until` (UTF-16 units of the original), or its end. */
  advance(until: number): void;
  /** How much search text there is. Before the end its last word may be going on. */
  readonly length: number;
  readonly done: boolean;
  textFrom(place: number): string;
  /** Where in the original the character stands that is at `place` in the search text. */
  originOf(place: number): number;
}

const blank = 0x20;

/** Whether a space between two characters that are in no words says something: not where a line is broken in a script without spaces. */
const isApart = (last: number, kind: number): boolean => last !== space && (isSign(last) || isSign(kind));

/** Folds a text step by step, so that one who looks for the beginning of something need not pay for all of it. */
export function foldingOf(text: string): Folding {
  let at = 0;
  let units = new Uint16Array(text.length + 64);
  let origins = new Uint32Array(units.length);
  let size = 0;
  /** Kind of the last character that came out; a space before anything did. */
  let last = space;
  let gap = false;

  function put(unit: number, origin: number): void {
    if (size === units.length) {
      const [more, whence] = [new Uint16Array(size * 2), new Uint32Array(size * 2)];
      more.set(units);
      whence.set(origins);
      [units, origins] = [more, whence];
    }
    units[size] = unit;
    origins[size++] = origin;
  }

  function putPoint(point: number, kind: number): void {
    if (kind === space) {
      gap = true;
      return;
    }
    if (isAlphabetic(kind) ? last !== kind || gap : isAlphabetic(last) || (gap && isApart(last, kind))) put(blank, at);
    if (point > 0xffff) {
      put(0xd800 + ((point - 0x10000) >> 10), at);
      put(0xdc00 + (point & 0x3ff), at);
    } else put(point, at);
    last = kind;
    gap = false;
  }

  function step(): void {
    const code = text.charCodeAt(at);
    if (code < 0x80 && !(text.charCodeAt(at + 1) >= 0x300)) {
      const lower = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
      putPoint(lower, kindOf(lower));
      at++;
      return;
    }
    const { folded, end } = clusterAt(text, at);
    for (let i = 0; i < folded.length; i++) {
      const point = folded.codePointAt(i)!;
      if (point > 0xffff) i++;
      putPoint(point, kindOf(point));
    }
    at = end;
  }

  return {
    advance(until) {
      if (at >= text.length) return;
      const end = Math.min(until, text.length);
      while (at < end) step();
      if (at >= text.length && isAlphabetic(last)) put(blank, at);
    },
    get length() {
      return size;
    },
    get done() {
      return at >= text.length;
    },
    textFrom: (place) => Buffer.from(units.buffer, place * 2, Math.max(0, size - place) * 2).toString('utf16le'),
    originOf: (place) => (place < size ? origins[place]! : text.length),
  };
}
