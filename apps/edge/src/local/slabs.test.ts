import { expect, test } from '@jest/globals';
import { type Slab, slab_bytes, slabs, type Waiting } from './slabs.js';

const bytes = (size: number, first: number) => Uint8Array.from({ length: size }, (_, n) => (first + n) % 251);
const all = (queue: readonly Slab[]) => Buffer.concat(queue.map(({ memory, used }) => memory.subarray(0, used)));
const upload = (): Waiting => ({ pending: 0, queue: [] });

test('what is put in comes out, whatever the sizes, in as few pieces as hold it', () => {
  const pool = slabs();
  const one = upload();
  const given = [bytes(3, 0), bytes(0, 0), bytes(slab_bytes, 7), bytes(2 * slab_bytes + 5, 9), bytes(1, 3)];
  for (const data of given) pool.fill(one, data);
  expect(all(one.queue)).toEqual(Buffer.concat(given));
  expect(one.queue).toHaveLength(4);
});

test('memory that is given back is filled anew, and never what somebody still holds', () => {
  const pool = slabs();
  const [one, two] = [upload(), upload()];
  pool.fill(one, bytes(10, 1));
  pool.fill(two, bytes(10, 2));
  const { memory } = one.queue[0]!;
  pool.taken(one, one.queue.splice(0), true);
  pool.fill(one, bytes(20, 5));
  pool.fill(two, bytes(10, 12));
  expect(one.queue[0]!.memory).toBe(memory);
  expect(all(one.queue)).toEqual(Buffer.from(bytes(20, 5)));
  expect(all(two.queue)).toEqual(Buffer.from(bytes(20, 2)));
  pool.taken(one, one.queue.splice(0), false);
  pool.fill(one, bytes(1, 1));
  expect(one.queue[0]!.memory).not.toBe(memory);
});

test('it knows what waits, of how many, however it comes to its end', () => {
  const pool = slabs();
  const [one, two] = [upload(), upload()];
  pool.fill(one, bytes(slab_bytes + 10, 1));
  pool.fill(two, bytes(7, 2));
  expect([pool.pending, pool.waiting, one.pending]).toEqual([slab_bytes + 17, 2, slab_bytes + 10]);
  const taken = one.queue.splice(0);
  pool.fill(one, bytes(5, 1));
  pool.drop(one);
  expect([pool.pending, pool.waiting, one.pending]).toEqual([slab_bytes + 17, 2, slab_bytes + 10]);
  pool.taken(one, taken, false);
  expect([pool.pending, pool.waiting, one.pending]).toEqual([7, 1, 0]);
  pool.drop(two);
  expect([pool.pending, pool.waiting, two.queue]).toEqual([0, 0, []]);
});
