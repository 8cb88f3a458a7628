import { expect, test } from '@jest/globals';
import { sealing } from './seal.js';
import { seededRandom } from './testing/seeded-random.js';

const random = seededRandom(7);

test('what is sealed opens for what it belongs to, and nowhere else; twice the same text is not seen to be', () => {
  const { seal, open } = sealing(['a secret of the test'], random);
  const sealed = seal('key 🔑', 'tenant\nagent');
  expect(sealed).not.toContain('key');
  expect(seal('key 🔑', 'tenant\nagent')).not.toBe(sealed);
  expect(open(sealed, 'tenant\nagent')).toBe('key 🔑');
  expect(open(sealed, 'tenant\nother')).toBeUndefined();
  expect(open(seal('', 'x'), 'x')).toBe('');
});

test('a new secret in front of the old one: both open, the new one seals; without the old one its texts stay shut', () => {
  const old = sealing(['old'], random).seal('text', 'x');
  const both = sealing(['new', 'old'], random);
  expect([both.open(old, 'x'), sealing(['new'], random).open(old, 'x')]).toEqual(['text', undefined]);
  expect(sealing(['new'], random).open(both.seal('text', 'x'), 'x')).toBe('text');
  expect(() => sealing([], random)).toThrow(TypeError);
});

test('what was changed, cut or never sealed opens nothing', () => {
  const { seal, open } = sealing(['s'], random);
  const sealed = seal('text', 'x');
  const at = sealed.length - 3;
  const other = sealed[at] === 'A' ? 'B' : 'A';
  for (const bad of [`${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`, sealed.slice(0, 20), '', 's1.', 's2.AAAA', 'text'])
    expect(open(bad, 'x')).toBeUndefined();
});
