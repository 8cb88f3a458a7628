import { isAlphabetic, kindOf } from './letters.js';
import { searchText } from './search-text.js';

/** A word or phrase of a query, as search text. */
export interface Term {
  /** Anywhere, in the middle of a word too. */
  readonly part: string;
  /** At the beginning of a word. Equal to `part` where that is not a letter of an alphabet: any place is a beginning there. */
  readonly start: string;
  /** From the beginning of a word to the end of one. */
  readonly whole: string;
}

/** What a query asks for: every one of `all` occurs, and none of `none`. */
export interface SearchQuery {
  readonly all: readonly Term[];
  readonly none: readonly Term[];
  /** All of `all` in a row, as they were typed; undefined when there is one or none. */
  readonly joined: Term | undefined;
}

const quotes = /[“”„‟«»＂〝〞]/gu;
const term = /([-－−]?)(?:"([^"]*)"?|(\S+))/gu;
/** Around a word of a sentence, and not part of what is looked for. */
const before = /^[([{'"¡¿（［｛「『【《〈]+/u;
const after = /[.,;:!?…()[\]{}'"。、，．；：！？（）［］｛｝」』】》〉]+$/u;
const meaningful = /[\p{L}\p{N}\p{M}\p{So}\p{Sc}]/u;

/**
 * Words, "quoted phrases" and -excluded ones; `--word` is a word. Any text is a query; one that asks for nothing finds nothing.
 * Punctuation around words is passed over, and so are words of nothing else, unless the query has no others.
 */
export function parseQuery(text: string): SearchQuery {
  const all = new Map<string, Term>();
  const marks = new Map<string, Term>();
  const none = new Map<string, Term>();
  const put = (into: Map<string, Term>, words: string): void => {
    const found = termOf(words);
    if (found && !into.has(found.part)) into.set(found.part, found);
  };
  for (const [whole, minus, phrase, word = ''] of text.replace(quotes, '"').matchAll(term)) {
    if (phrase !== undefined) put(minus === '' ? all : none, phrase);
    else if (minus === '') put(meaningful.test(word) ? all : marks, trimmed(word));
    else if (!dashes.test(word)) put(none, trimmed(word));
    else put(meaningful.test(word) ? all : marks, trimmed(whole));
  }
  const asked = [...(all.size > 0 ? all : marks).values()];
  return { all: asked, none: [...none.values()], joined: asked.length > 1 ? termOf(asked.map(({ part }) => part).join(' ')) : undefined };
}

const dashes = /^[-－−]/u;

function trimmed(word: string): string {
  const bare = word.replace(before, '').replace(after, '');
  return meaningful.test(bare) ? bare : word;
}

function termOf(words: string): Term | undefined {
  const spaced = searchText(words);
  const part = spaced.trim();
  if (part === '') return undefined;
  const start = isAlphabetic(kindOf(part.codePointAt(0)!)) ? ` ${part}` : part;
  return { part, start, whole: spaced.endsWith(' ') ? `${start} ` : start };
}

/** Best to worst: 0 all terms in a row as whole words, 1 all as whole words, 2 all at beginnings of words, 3 anywhere. Undefined: no match. */
export function rankOf(query: SearchQuery, folded: string): number | undefined {
  const every = (form: keyof Term): boolean => query.all.every((wanted) => folded.includes(wanted[form]));
  if (query.all.length === 0 || !every('part') || query.none.some(({ part }) => folded.includes(part))) return undefined;
  if (folded.includes((query.joined ?? query.all[0]!).whole)) return 0;
  return every('whole') ? 1 : every('start') ? 2 : 3;
}
