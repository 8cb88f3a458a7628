import { describe, expect, test } from '@jest/globals';
import { foldingOf, searchText } from './search-text.js';

describe('searchText', () => {
  test.each([
    ['Deploy, now! 今天 天气', ' deploy , now ! 今天天气'],
    ['Straße ÉCOLE Łódź œuvre', ' strasse ecole lodz oeuvre '],
    ['İSTANBUL ılık', ' istanbul ilik '],
    ['ΣΟΦΟΣ Ελλάδα', ' σοφοσ ελλαδα '],
    ['Всё Йод', ' все иод '],
    ['ﬁn １２ ｶﾞ', ' fin 12 ガ'],
    ['его\u0301 עוֹלָם', ' его עולם '],
    ['कि की', ' कि की '],
    ['it’s “so”', ` it ' s " so "`],
    ['soft\u00adhyphen zero\u200bwidth', ' softhyphen zerowidth '],
    ['❤️ 👍🏽', '❤ 👍🏽'],
    ['100% _real_', ' 100 % _ real _'],
    ['a\0b\ud800c', ' a b \ufffd c '],
    ['한국어', '한국어'],
    ['', ''],
    [' \n\u3000', ''],
  ])('%j', (text, folded) => {
    expect(searchText(text)).toBe(folded);
  });

  test('both forms of Unicode are one, and folding twice changes nothing', () => {
    for (const text of ['Tiếng Việt Đà Nẵng', 'ガギグ 한국어', 'é̖ ö ñ', 'Ελλάδα', 'हिन्दी']) {
      expect(searchText(text.normalize('NFD'))).toBe(searchText(text.normalize('NFC')));
      expect(searchText(searchText(text))).toBe(searchText(text));
    }
  });

  test('thousands of marks on one letter take no longer than as many letters', () => {
    const began = process.cpuUsage();
    expect(searchText(`a${'\u0301\u0316'.repeat(16_000)}b`)).toBe(' ab ');
    expect(searchText(`क${'\u0941\u093c'.repeat(16_000)}`).length).toBeGreaterThan(16_000);
    // By Unicode's own rules in one go: more than a second.
    expect(process.cpuUsage(began).user).toBeLessThan(500_000);
  });
});

test('foldingOf: step by step is the same as at once, and each place has its origin', () => {
  const text = 'Ab ﬃ 天气 é🦊 Straße';
  const folding = foldingOf(text);
  for (let until = 1; !folding.done; until++) folding.advance(until);
  expect(folding.textFrom(0)).toBe(searchText(text));
  for (const [word, original] of [
    ['ffi', 'ﬃ'],
    ['气', '气'],
    ['🦊', '🦊'],
    ['strasse', 'Straße'],
  ] as const) {
    expect(folding.originOf(searchText(text).indexOf(word))).toBe(text.indexOf(original));
  }
});
