import { expect, test } from '@jest/globals';
import { type Slab, slab_bytes, slabs, type Waiting } from './slabs.js';

const bytes = (size: number, first: number) => Uint8Array.from({ length: size }, (_, n) => (first + n) % 251);
const all = (queue: readonly Slab[]) => Buffer.concat(queue.map(({ memory, used }) => memory.subarray(0, used)));
const upload = (): Waiting => ({ pending: 0, queue: [] });
const large = 20 * 1024;

test('what is put in comes out, whatever the sizes, in few pieces', () => {
  const pool = slabs();
  const one = upload();
  const given = [
    bytes(large, 0),
    bytes(0, 0),
    bytes(slab_bytes, 7),
    bytes(2 * slab_bytes + 5, 9),
    bytes(1, 3),
    bytes(large, 3),
    bytes(7, 1),
  ];
  for (const data of given) pool.fill(one, data);
  expect(all(one.queue)).toEqual(Buffer.concat(given));
  expect(one.queue.length).toBeLessThanOrEqual(6);
});

test('a byte that waits costs no more than a byte', () => {
  const pool = slabs();
  const uploads = Array.from({ length: 100 }, upload);
  for (const one of uploads) pool.fill(one, bytes(1, 1));
  expect([pool.held_bytes, pool.waiting]).toEqual([100, 100]);
});

test('memory that is given back is filled anew, and never what somebody still holds', () => {
  const pool = slabs();
  const [one, two] = [upload(), upload()];
  pool.fill(one, bytes(large, 1));
  pool.fill(two, bytes(large, 2));
  const { memory } = one.queue[0]!;
  pool.taken(one, one.queue.splice(0), true);
  pool.fill(one, bytes(large, 5));
  pool.fill(two, bytes(10, (2 + large) % 251));
  expect(one.queue[0]!.memory).toBe(memory);
  expect(all(one.queue)).toEqual(Buffer.from(bytes(large, 5)));
  expect(all(two.queue)).toEqual(Buffer.from(bytes(large + 10, 2)));
  pool.taken(one, one.queue.splice(0), false);
  pool.fill(one, bytes(large, 1));
  expect(one.queue[0]!.memory).not.toBe(memory);
});

test('it knows how much memory waits, of how many, however it comes to its end', () => {
  const pool = slabs();
  const [one, two] = [upload(), upload()];
  pool.fill(one, bytes(slab_bytes + large, 1));
  pool.fill(two, bytes(7, 2));
  expect([pool.held_bytes, pool.waiting, one.pending]).toEqual([2 * slab_bytes + 7, 2, slab_bytes + large]);
  const taken = one.queue.splice(0);
  pool.fill(one, bytes(5, 1));
  pool.drop(one);
  expect([pool.held_bytes, pool.waiting, one.pending]).toEqual([2 * slab_bytes + 7, 2, slab_bytes + large]);
  pool.taken(one, taken, false);
  expect([pool.held_bytes, pool.waiting, one.pending]).toEqual([7, 1, 0]);
  pool.drop(two);
  expect([pool.held_bytes, pool.waiting, two.queue]).toEqual([0, 0, []]);
});
