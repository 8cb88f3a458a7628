import { describe, expect, test } from '@jest/globals';
import { parseQuery, rankOf } from './query.js';
import { searchText } from './search-text.js';

describe('parseQuery', () => {
  test.each<[string, string[], string[]]>([
    ['deploy now', ['deploy', 'now'], []],
    ['"the service" -old', ['the service'], ['old']],
    ['-"two words" x', ['x'], ['two words']],
    ['“smart quotes” －全角', ['smart quotes'], ['全角']],
    ['"unfinished phrase', ['unfinished phrase'], []],
    ['ÉCOLE Straße', ['ecole', 'strasse'], []],
    ['a a A', ['a'], []],
    ['', [], []],
    ['"" "  " -""', [], []],
    ['a-b', ['a - b'], []],
    ['--force -x', ['-- force'], ['x']],
    ['(deploy), now?!', ['deploy', 'now'], []],
    ['C++ .net', ['c ++', '. net'], []],
    ['a <-> b', ['a', 'b'], []],
    ['<-> &', ['<->', '&'], []],
    ['今天 天气', ['今天', '天气'], []],
    ['-only -these', [], ['only', 'these']],
  ])('%j', (text, all, none) => {
    const query = parseQuery(text);
    expect([query.all, query.none].map((terms) => terms.map(({ part }) => part))).toEqual([all, none]);
  });

  test('a term has beginnings and ends of words only where it is of an alphabet', () => {
    expect(parseQuery('deploy').all[0]).toEqual({ part: 'deploy', start: ' deploy', whole: ' deploy ' });
    expect(parseQuery('天气').all[0]).toEqual({ part: '天气', start: '天气', whole: '天气' });
  });
});

test('rankOf: in a row, whole words, beginnings, anywhere, or not at all', () => {
  const rank = (query: string, text: string) => rankOf(parseQuery(query), searchText(text));
  expect(rank('red fox', 'a Red Fox.')).toBe(0);
  expect(rank('red fox', 'the fox is red')).toBe(1);
  expect(rank('red fox', 'foxes, redder')).toBe(2);
  expect(rank('red fox', 'outfoxed, tired')).toBe(3);
  expect(rank('red fox', 'red')).toBeUndefined();
  expect(rank('red -fox', 'red foxes')).toBeUndefined();
  expect(rank('-fox', 'red')).toBeUndefined();
  expect(rank('天气', '今天天气很好')).toBe(0);
});
