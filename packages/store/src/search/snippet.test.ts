import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseQuery, rankOf } from './query.js';
import { searchText } from './search-text.js';
import { snippetOf } from './snippet.js';

const of = (text: string, words: string): string => {
  const query = parseQuery(words);
  const rank = rankOf(query, searchText(text));
  if (rank === undefined) throw new Error(`no match: ${words}`);
  return snippetOf(text, query, rank);
};
const segmenter = new Intl.Segmenter('und');

describe('snippetOf', () => {
  test('a short text is its own', () => {
    expect(of('short and\nsweet', 'SWEET')).toBe('short and\nsweet');
  });

  test('around the match, between words, with dots where something is left out', () => {
    const text = `${'before it '.repeat(50)}the needle${' after it'.repeat(50)}`;
    expect(of(text, 'needle')).toMatch(/^…(before it |it )+the needle( after it)+( after)?…$/);
    expect(of(`needle${' after'.repeat(50)}`, 'needle')).toMatch(/^needle( after)+…$/);
    expect(of(`${'before '.repeat(50)}needle`, 'needle')).toMatch(/^….*needle$/);
  });

  test('around the place that matches best', () => {
    const text = `concatenate ${'x '.repeat(200)}the cat ${'y '.repeat(200)}`;
    expect(of(text, 'cat')).toContain('the cat');
  });

  test('folding changes lengths, the place is still right', () => {
    expect(of(`${'ﬃ'.repeat(3_000)} needle ${'ﬃ'.repeat(3_000)}`, 'needle')).toContain(' needle ');
  });

  test('SEA4: at most 160 code points, taken from the text, matching, and no character cut', () => {
    const pieces = ['👨‍👩‍👧‍👦', '🇩🇪', 'é', 'e\u0301\u0316', 'a', ' ', '\n', '天', '한', 'ก็', 'नि', '👍🏽', 'ﬃ', '\r\n', '1️⃣', ' needle '];
    const property = fc.property(fc.array(fc.constantFrom(...pieces), { minLength: 60, maxLength: 300 }), fc.nat(299), (parts, at) => {
      const text = parts.toSpliced(at, 0, 'needle').join('');
      const snippet = of(text, 'eedl');
      expect([...snippet].length).toBeLessThanOrEqual(160);
      const core = snippet.replace(/^…|…$/g, '');
      expect(core).toContain('needle');
      const boundaries = new Set([...[...segmenter.segment(text)].map(({ index }) => index), text.length]);
      let whole = false;
      for (let from = text.indexOf(core); from >= 0 && !whole; from = text.indexOf(core, from + 1)) {
        whole = boundaries.has(from) && boundaries.has(from + core.length);
      }
      expect(whole).toBe(true);
    });
    fc.assert(property, { numRuns: 300, seed: 3 });
  });
});
