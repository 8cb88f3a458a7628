import { Readable } from 'node:stream';
import { systemClock } from '@iris/runtime';
import { manualClock } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import { s3Reader } from './s3-read.js';

const MiB = 1024 * 1024;
const object = Buffer.alloc(10 * MiB + 3, 'what comes is what is there ');

/** A server that remembers what it was asked for; `of` may say how a range is answered. */
function server(of: (from: number, to: number) => Readable | undefined = () => undefined) {
  const asked: [number, number][] = [];
  const bodies: Readable[] = [];
  const get = async (_key: string, _etag: string | undefined, from: number, to: number) => {
    asked.push([from, to]);
    const pieces = Array.from({ length: Math.ceil((to - from) / 65_536) }, (_, n) => from + n * 65_536);
    const body = of(from, to) ?? Readable.from(pieces.map((at) => object.subarray(at, Math.min(to, at + 65_536))));
    bodies.push(body);
    return body;
  };
  return { asked, bodies, get };
}
async function all(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}

test('a quick reader is given all that is left in one answer', async () => {
  const { asked, get } = server();
  expect((await all(s3Reader(get, systemClock)('k', 'e', 5, object.length))).equals(object.subarray(5))).toBe(true);
  expect(asked).toEqual([
    [5, MiB + 5],
    [MiB + 5, 2 * MiB + 5],
    [2 * MiB + 5, object.length],
  ]);
});

test('PUL2: a slow reader is given windows, and holds no connection while it waits', async () => {
  const clock = manualClock();
  const { asked, get } = server();
  const pieces: Uint8Array[] = [];
  for await (const piece of s3Reader(get, clock)('k', 'e', 0, object.length)) {
    pieces.push(piece);
    await clock.advance(100);
  }
  expect(Buffer.concat(pieces).equals(object)).toBe(true);
  expect(Math.max(...asked.map(([from, to]) => to - from))).toBe(MiB);
});

test('a reader that was quick and stops loses its connection, and has all bytes all the same', async () => {
  const clock = manualClock();
  const { asked, bodies, get } = server();
  const pieces: Uint8Array[] = [];
  for await (const piece of s3Reader(get, clock)('k', 'e', 0, object.length)) {
    pieces.push(piece);
    if (pieces.length !== 5) continue;
    await clock.advance(1_000);
    expect(bodies.at(-1)?.destroyed).toBe(true);
  }
  expect(Buffer.concat(pieces).equals(object)).toBe(true);
  expect(asked.filter(([from, to]) => to - from > MiB).length).toBeGreaterThan(1);
});

test('a connection that breaks is asked again from there; a server that says nothing more is an error', async () => {
  const half = (from: number) =>
    Readable.from(
      (async function* () {
        yield object.subarray(from, from + 100_000);
        throw new Error('reset');
      })(),
    );
  let broken = 0;
  const once = server((from, to) => (to - from > MiB && broken++ === 0 ? half(from) : undefined));
  expect((await all(s3Reader(once.get, systemClock)('k', 'e', 0, object.length))).equals(object)).toBe(true);
  expect(broken).toBeGreaterThan(1);
  const never = server((from) => (from >= 2 * MiB ? half(from) : undefined));
  await expect(all(s3Reader(never.get, systemClock)('k', 'e', 0, object.length))).rejects.toThrow('reset');
});
