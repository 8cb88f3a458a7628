/**
 * What a folded character is to search. Letters of alphabets make words, and words have beginnings and ends. Everything else stands
 * for itself: scripts that write no spaces and have many characters (Han, kana, Hangul), emoji, punctuation.
 */
export type Letter = number;

export const space = 0;
/** Han, Hangul, and what else is a letter above the alphabets: each says much. */
export const ideograph = 1;
/** Few as the letters of an alphabet, but words of them have no ends. */
export const kana = 2;
/** Punctuation, emoji, signs. */
const sign = 3;
/** `a`–`z` and `0`–`9`. */
export const latin = 4;
/** The first of the other alphabets: each is what stands in the same 256 code points. */
const others = 5;

const alphabetsEnd = 0x2e80;
const isJamo = (point: number): boolean => point >= 0x1100 && point < 0x1200;
const inWords = /^[\p{L}\p{N}\p{M}]$/u;

const plane = new Uint8Array(0x10000).fill(0xff);

/** A space, an ideograph, a sign, or the alphabet of a letter: anything from {@link latin} on. */
export function kindOf(point: number): Letter {
  if (point > 0xffff) return inWords.test(String.fromCodePoint(point)) ? ideograph : sign;
  let kind = plane[point]!;
  if (kind === 0xff) {
    kind = look(point);
    plane[point] = kind;
  }
  return kind;
}

function look(point: number): Letter {
  const text = String.fromCodePoint(point);
  if (/^[a-z0-9]$/.test(text)) return latin;
  if (/^[\p{White_Space}\p{Cc}]$/u.test(text)) return space;
  if (!inWords.test(text)) return sign;
  if (point >= 0x3041 && point <= 0x30ff) return kana;
  return point < alphabetsEnd && !isJamo(point) ? others + (point >> 8) : ideograph;
}

export const isSign = (kind: Letter): boolean => kind === sign;
export const isAlphabetic = (kind: Letter): boolean => kind >= latin;

/** The letters of an alphabet. */
export function lettersOf(alphabet: Letter): number[] {
  const from = alphabet === latin ? 0 : (alphabet - others) << 8;
  return Array.from({ length: 256 }, (_, n) => from + n).filter((point) => kindOf(point) === alphabet);
}
