import { expect, test } from '@jest/globals';
import { ownName } from './connections.js';

test('a name is of one statement: the second of two is refused at once, and not on the one connection that has had the first', () => {
  expect(ownName('of_one', 'SELECT 1')).toBe('of_one');
  expect(ownName('of_one', 'SELECT 1')).toBe('of_one');
  expect(() => ownName('of_one', 'SELECT 2')).toThrow('two statements are called of_one');
});
