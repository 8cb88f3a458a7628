import { expect, test } from '@jest/globals';
import { objectName } from './object-name.js';

test('our own ids stay as they are', () => {
  for (const id of ['md_0k3x', 'tn5-a', 'a'.repeat(128)]) expect(objectName(id)).toBe(id);
});

test('everything else becomes one plain name, and no two the same, whatever the file system makes of case', () => {
  const ids = ['', '.', '..', '../x', 'a/b', 'a\\b', 'A', 'a', 'é', 'e\u0301', 'x'.repeat(129), 'a.b', '~', 'con:', '\n', '\u0000'];
  const names = ids.map(objectName);
  for (const name of names) expect(name).toMatch(/^(?:[0-9a-z_-]{1,128}|~[0-9a-f]{64})$/);
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(ids.length);
});

test('a hash cannot be given as an id', () => {
  expect(objectName(objectName('..'))).not.toBe(objectName('..'));
});
