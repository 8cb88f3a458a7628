/**
 * Text as search compares it: without case and accents, compatibility forms made equal. Folding looks at one cluster of the text
 * (a character and the marks on it) at a time, so each place of the folded text has its place in the original.
 */

/** What is left out. Vowel signs of other scripts are letters of theirs, and stay. */
const dropped = new RegExp(
  [
    // Accents: of Latin, Greek and Cyrillic, of Cyrillic alone, rarer ones, and what stands around a letter.
    String.raw`[\u0300-\u036f]|[\u0483-\u0489]|[\u1ab0-\u1aff]|[\u1dc0-\u1dff]|[\u20d0-\u20ff]|[\ufe20-\ufe2f]`,
    // Points of Hebrew, Arabic (with the stroke that only makes words longer) and Syriac.
    String.raw`[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]`,
    String.raw`[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]`,
    String.raw`\u0711|[\u0730-\u074a]`,
    // What cannot be seen: joiners, directions, variation selectors, soft hyphens.
    String.raw`\p{Default_Ignorable_Code_Point}`,
  ].join('|'),
  'gu',
);

/** Letters with a stroke or a hook, and forms of one letter, that Unicode does not take apart. */
const alike = new Map<string, string>();
const groups =
  'æ ae,œ oe,þ th,øɵɔ o,đðɖɗƌ d,ħ h,ĸƙ k,łƚ l,ŋɲƞ n,ŧʈƭƫⱦ t,ƀɓƃ b,ƈȼ c,ɠǥɣ g,ɨɩ i,ƥ p,ʉʊ u,ʋ v,ƴɏ y,ƶȥʒ z,əǝɛɇ e,ɉ j,ɍ r,ⱥ a,ƒ f,' +
  'ς σ,ٱ ا,ى ي,ی ي,ة ه,ہ ه,ھ ه,ک ك,’‘‛′ʼʻ׳ \',“”„‟″«»״ ",‐–—― -';
for (const group of groups.split(',')) {
  const [from, to] = group.split(' ') as [string, string];
  for (const letter of from) alike.set(letter, to);
}

/** A cluster of more than this is cut: marks are put in order by pairs, which takes long for thousands. */
const longestCluster = 32;

function foldCluster(cluster: string): string {
  const bare = cluster.replace(dropped, '');
  if (bare === '') return '';
  const folded = bare.normalize('NFKD').replace(dropped, '').toUpperCase().toLowerCase();
  let result = '';
  for (const letter of folded) result += alike.get(letter) ?? letter;
  return result.normalize('NFC');
}

/** By first letter; a space where the text has one, or something else that is no text. */
const memo = new Map<number, string>();
const memoSize = 50_000;

function foldPoint(point: number): string {
  let folded = memo.get(point);
  if (folded === undefined) {
    const text = String.fromCodePoint(point);
    folded = blank.test(text) ? ' ' : foldCluster(isSurrogate(point) ? '\ufffd' : text);
    if (memo.size < memoSize) memo.set(point, folded);
  }
  return folded;
}

const blank = /^[\p{White_Space}\p{Cc}]$/u;
const isSurrogate = (point: number): boolean => (point & 0xfffff800) === 0xd800;

/** Marks, and what composes with the letter before it: half-width voicing marks, vowels and finals of Hangul. */
const extending = /^[\p{M}\uff9e\uff9f\u1160-\u11ff]$/u;
const extends_ = new Map<number, boolean>();
function isExtending(point: number): boolean {
  if (point < 0x300) return false;
  let known = extends_.get(point);
  if (known === undefined) {
    known = extending.test(String.fromCodePoint(point));
    if (extends_.size < memoSize) extends_.set(point, known);
  }
  return known;
}

export interface Cluster {
  /** Folded; empty when nothing is left, a space for one. */
  readonly folded: string;
  /** Where it ends in the text. */
  readonly end: number;
}

/** The cluster that begins at `at`. */
export function clusterAt(text: string, at: number): Cluster {
  const first = text.codePointAt(at) ?? 0;
  let end = at + (first > 0xffff ? 2 : 1);
  let points = 1;
  while (end < text.length && points < longestCluster) {
    const next = text.codePointAt(end) ?? 0;
    if (!isExtending(next)) break;
    end += next > 0xffff ? 2 : 1;
    points++;
  }
  return { folded: points === 1 ? foldPoint(first) : foldCluster(text.slice(at, end)), end };
}
