import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { gramSeed, gramsOf, gramsOfTerms, termGrams } from './grams.js';
import { parseQuery } from './query.js';
import { searchText } from './search-text.js';

const seed = gramSeed('tn_1');
const alphabets = ['a', 'b', 'Z', 'é', ' ', 'я', 'ж', '天', '气', 'か', 'ー', '한', '-', ',', '🦊', '1', '\n', 'ก', 'ı'];
const texts = fc.array(fc.constantFrom(...alphabets), { maxLength: 30 });

describe('grams', () => {
  test('every message with a term has the grams that are asked for, in each form', () => {
    const property = fc.property(texts, fc.nat(29), fc.integer({ min: 1, max: 6 }), (letters, from, length) => {
      const folded = searchText(letters.join(''));
      const grams = new Set(gramsOf(seed, folded));
      for (const term of parseQuery(`"${letters.slice(from, from + length).join('')}"`).all) {
        for (const form of ['part', 'whole'] as const) {
          if (!folded.includes(term[form])) continue;
          const { all, any } = termGrams(seed, term.part, form === 'whole');
          expect(all.filter((gram) => !grams.has(gram))).toEqual([]);
          expect(any.length === 0 || any.some((gram) => grams.has(gram))).toBe(true);
        }
      }
    });
    fc.assert(property, { numRuns: 3_000, seed: 1 });
  });

  test('a part of a message is found in it', () => {
    const property = fc.property(texts, fc.nat(29), fc.integer({ min: 1, max: 6 }), (letters, from, length) => {
      const folded = searchText(letters.join(''));
      for (const { part } of parseQuery(`"${letters.slice(from, from + length).join('')}"`).all) expect(folded).toContain(part);
    });
    fc.assert(property, { numRuns: 3_000, seed: 2 });
  });

  test('of another tenant they are others', () => {
    const folded = searchText('deploy the service 今天');
    const mine = new Set(gramsOf(seed, folded));
    expect(gramsOf(gramSeed('tn_2'), folded).filter((gram) => mine.has(gram))).toEqual([]);
  });

  test('any query asks for a bounded number', () => {
    const long = Array.from({ length: 200 }, (_, n) => `w${n}xyz`).join(' ');
    const { all, any } = gramsOfTerms(seed, parseQuery(`${long} ab cd ef gh`).all, false);
    expect(all.length).toBeLessThanOrEqual(48);
    expect(any.length).toBeLessThanOrEqual(3);
  });
});
