import { isAlphabetic, kana, kindOf, lettersOf, space } from './letters.js';

/**
 * Grams: the pieces of search text by which messages are found in the index, as 32-bit hashes that differ from tenant to tenant.
 * A hash that two pieces share costs a look at a message that does not match; it never hides one.
 *
 * - of a word: each three letters in a row, its last two with a mark for the end, a word of one letter with two, and its alphabet;
 * - of the rest: each character, and each two ideographs in a row.
 */

const end = 0x110000;
const alphabetMark = 0x120000;

/** Starting point of a tenant's hashes. */
export function gramSeed(tenant_id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < tenant_id.length; i++) hash = mix(hash, tenant_id.charCodeAt(i));
  return hash;
}

function mix(hash: number, point: number): number {
  let h = Math.imul(hash ^ point, 0x9e3779b1);
  h ^= h >>> 15;
  return Math.imul(h, 0x85ebca77);
}

function gram(seed: number, a: number, b: number, c: number): number {
  const h = mix(mix(mix(seed, a), b), c);
  return h ^ (h >>> 13);
}

/** All grams of a message's search text, each once. */
export function gramsOf(seed: number, searchText: string): number[] {
  const found = new Set<number>();
  let [a, b] = [0, 0];
  let kind = space;
  let length = 0;
  const endWord = (): void => {
    if (!isAlphabetic(kind)) return;
    found.add(length === 1 ? gram(seed, b, end, end) : gram(seed, a, b, end));
    found.add(gram(seed, alphabetMark, kind, 0));
  };
  for (let i = 0; i < searchText.length; i++) {
    const point = searchText.codePointAt(i)!;
    if (point > 0xffff) i++;
    const next = kindOf(point);
    if (next !== kind || !isAlphabetic(next)) {
      endWord();
      length = 0;
    }
    if (isAlphabetic(next)) {
      if (length >= 2) found.add(gram(seed, a, b, point));
    } else if (next !== space) {
      found.add(gram(seed, point, 0, 0));
      if (next === kana && kind === kana) found.add(gram(seed, b, point, 0));
    }
    [a, b] = [b, point];
    kind = next;
    length++;
  }
  endWord();
  return [...found];
}

export interface TermGrams {
  /** Every message with the term has all of these. */
  readonly all: readonly number[];
  /** And one of these; empty when nothing more is known. */
  readonly any: readonly number[];
}

/**
 * Grams of a term of a query, as search text without spaces around it. Its first word may begin earlier in the message, and its last
 * word go on, unless the term is asked for as a `whole`.
 */
export function termGrams(seed: number, term: string, whole: boolean): TermGrams {
  if (whole) return { all: gramsOf(seed, `${term} `), any: [] };
  const letter = oneLetter.exec(term)?.[0] ?? '';
  const first = isAlphabetic(kindOf(letter.codePointAt(0) ?? 0)) ? letter : '';
  const last = lastWord.exec(term)?.[0] ?? '';
  const all = new Set(gramsOf(seed, term.slice(first.length, term.length - last.length)));
  if (first !== '') all.add(gram(seed, alphabetMark, kindOf(first.codePointAt(0)!), 0));
  const points = Array.from(last, (letter) => letter.codePointAt(0)!);
  const alphabet = kindOf(points[0] ?? 0);
  const [a, b] = points as [number, number];
  if (!isAlphabetic(alphabet)) {
    for (const found of gramsOf(seed, last)) all.add(found);
    return { all: [...all], any: [] };
  }
  for (let i = 2; i < points.length; i++) all.add(gram(seed, points[i - 2]!, points[i - 1]!, points[i]!));
  if (points.length === 1) all.add(gram(seed, alphabetMark, alphabet, 0));
  const any = points.length === 2 ? [...lettersOf(alphabet), end].map((third) => gram(seed, a, b, third)) : [];
  return { all: [...all], any };
}

/** A word of one letter that ends within the term. */
const oneLetter = /^[^ ](?= )/u;
/** What stands after the last space: a word, or signs and ideographs. */
const lastWord = /[^ ]+$/u;

/** More than these would cost the index more than they spare it. */
const most = { all: 48, any: 3 };

/** Grams of all terms of a query together. */
export function gramsOfTerms(
  seed: number,
  terms: readonly { readonly part: string }[],
  whole: boolean,
): { readonly all: number[]; readonly any: (readonly number[])[] } {
  const found = terms.map(({ part }) => termGrams(seed, part, whole));
  const all = [...new Set(found.flatMap((grams) => grams.all))];
  const step = Math.ceil(all.length / most.all);
  return {
    all: all.filter((_, n) => n % step === 0),
    any: found.flatMap(({ any }) => (any.length > 0 ? [any] : [])).slice(0, most.any),
  };
}
