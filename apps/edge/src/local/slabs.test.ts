import { expect, test } from '@jest/globals';
import { type Slab, slab_bytes, slabs } from './slabs.js';

const bytes = (size: number, first: number) => Uint8Array.from({ length: size }, (_, n) => (first + n) % 251);
const all = (queue: readonly Slab[]) => Buffer.concat(queue.map(({ memory, used }) => memory.subarray(0, used)));

test('what is put in comes out, whatever the sizes, in as few pieces as hold it', () => {
  const pool = slabs();
  const queue: Slab[] = [];
  const given = [bytes(3, 0), bytes(0, 0), bytes(slab_bytes, 7), bytes(2 * slab_bytes + 5, 9), bytes(1, 3)];
  for (const data of given) pool.fill(queue, data);
  expect(all(queue)).toEqual(Buffer.concat(given));
  expect(queue).toHaveLength(4);
});

test('memory that is given back is filled anew, and never what somebody still holds', () => {
  const pool = slabs();
  const [one, two]: [Slab[], Slab[]] = [[], []];
  pool.fill(one, bytes(10, 1));
  pool.fill(two, bytes(10, 2));
  const { memory } = one[0]!;
  pool.give(one.splice(0));
  pool.fill(one, bytes(20, 5));
  pool.fill(two, bytes(10, 12));
  expect(one[0]!.memory).toBe(memory);
  expect(all(one)).toEqual(Buffer.from(bytes(20, 5)));
  expect(all(two)).toEqual(Buffer.from(bytes(20, 2)));
});
