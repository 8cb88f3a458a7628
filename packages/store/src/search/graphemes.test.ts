import { expect, test } from '@jest/globals';
import { isPlain } from './graphemes.js';

const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' });

test('what counts as plain never joins its like, as Unicode has it', () => {
  const plain = Array.from({ length: 0x10000 }, (_, unit) => unit).filter(isPlain);
  expect(plain.length).toBeGreaterThan(30_000);
  // Each beside itself, and beside every other once in a while: steps that share no factor with the length meet all.
  for (const step of [0, 1, 257, 4_099]) {
    const points = plain.flatMap((unit, n) => [unit, plain[(n + step) % plain.length]!]);
    for (let n = 0; n < points.length; n += 64) {
      const text = String.fromCharCode(...points.slice(n, n + 64));
      const found = [...segmenter.segment(text)].map(({ segment }) => segment.length);
      if (found.some((length) => length !== 1)) expect({ step, text, found }).toBeUndefined();
    }
  }
});
