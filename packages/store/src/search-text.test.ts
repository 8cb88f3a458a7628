import { describe, expect, test } from '@jest/globals';
import { foldText, matches, parseQuery, snippetOf } from './search-text.js';

describe('parseQuery', () => {
  test.each([
    ['deploy now', ['deploy', 'now'], []],
    ['"the service" -old', ['the service'], ['old']],
    ['-"two words" x', ['x'], ['two words']],
    ['"unfinished phrase', ['unfinished phrase'], []],
    ['ÉCOLE Straße', ['ecole', 'straße'], []],
    ['a a A', ['a'], []],
    ['', [], []],
    ['"" "  " -""', [], []],
    ['a-b -- c', ['a-b', 'c'], ['-']],
  ])('%j', (text, all, none) => {
    expect(parseQuery(text)).toEqual({ all, none });
  });
});

test('matches: all of the words, none of the excluded, and nothing for nothing', () => {
  const folded = foldText('Ein Über-Test');
  expect(matches(parseQuery('uber ein'), folded)).toBe(true);
  expect(matches(parseQuery('uber zwei'), folded)).toBe(false);
  expect(matches(parseQuery('uber -test'), folded)).toBe(false);
  expect(matches(parseQuery('-nothing'), folded)).toBe(false);
});

describe('snippetOf', () => {
  const length = (text: string) => [...text].length;

  test('a short text is its own', () => {
    expect(snippetOf('short', parseQuery('short'))).toBe('short');
  });

  test('around the match, at most 160 code points, no character split', () => {
    for (const at of [0, 30, 50, 200, 400, 560, 592]) {
      const text = `${'🦊'.repeat(at)}needle${'é'.normalize('NFD').repeat(300)}${'x'.repeat(594 - at)}`;
      const snippet = snippetOf(text, parseQuery('NEEDLE'));
      expect(length(snippet)).toBeLessThanOrEqual(160);
      expect(snippet).toContain('needle');
      expect(snippet).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
    }
  });

  test('folding changes lengths, the place is still right', () => {
    const text = `${'ﬃ'.repeat(200)}needle${'ﬃ'.repeat(200)}`;
    expect(snippetOf(text, parseQuery('needle'))).toContain('needle');
  });
});
