import { Readable } from 'node:stream';
import { systemClock } from '@iris/runtime';
import { manualClock } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import { type GetLine, type GetRange, s3Reader } from './s3-read.js';

const MiB = 1024 * 1024;
const object = Buffer.alloc(10 * MiB + 3, 'what comes is what is there ');

/** A server that remembers what it was asked for; `of` may say how a range is answered. Its lines use their memory again. */
function server(of: (from: number, to: number) => Readable | undefined = () => undefined) {
  const asked: [number, number][] = [];
  const lines: [number, number][] = [];
  const body = (from: number, to: number) => {
    const pieces = Array.from({ length: Math.ceil((to - from) / 65_536) }, (_, n) => from + n * 65_536);
    return of(from, to) ?? Readable.from(pieces.map((at) => object.subarray(at, Math.min(to, at + 65_536))));
  };
  const get: GetRange = async (_key, _etag, from, to) => {
    asked.push([from, to]);
    return body(from, to);
  };
  const getLine: GetLine = async (_key, _etag, from, to) => {
    lines.push([from, to]);
    const memory = Buffer.alloc(65_536);
    return (async function* () {
      for await (const piece of body(from, to) as AsyncIterable<Uint8Array>) {
        memory.set(piece);
        yield memory.subarray(0, piece.byteLength);
        memory.fill(0);
      }
    })();
  };
  return { asked, lines, get, getLine };
}
async function all(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}

test('a quick reader is given all that is left in one answer', async () => {
  const { asked, lines, get, getLine } = server();
  expect((await all(s3Reader(get, getLine, systemClock)('k', 'e', 5, object.length))).equals(object.subarray(5))).toBe(true);
  expect(asked).toEqual([
    [5, MiB + 5],
    [MiB + 5, 2 * MiB + 5],
  ]);
  expect(lines).toEqual([[2 * MiB + 5, object.length]]);
});

test('C90: what is lent is right until the next is asked for, and memory is not taken again for another', async () => {
  const { get, getLine } = server();
  const seen = new Set<ArrayBufferLike>();
  let at = 0;
  for await (const piece of s3Reader(get, getLine, systemClock)('k', 'e', 0, object.length, true)) {
    expect(object.subarray(at, at + piece.byteLength).equals(piece)).toBe(true);
    at += piece.byteLength;
    seen.add(piece.buffer);
  }
  expect(at).toBe(object.length);
  // Two windows, and what the line has.
  expect(seen.size).toBe(3);
});

test('PUL2: a slow reader is given windows, and holds no connection while it waits', async () => {
  const clock = manualClock();
  const { asked, lines, get, getLine } = server();
  const pieces: Uint8Array[] = [];
  for await (const piece of s3Reader(get, getLine, clock)('k', 'e', 0, object.length)) {
    pieces.push(piece);
    await clock.advance(100);
  }
  expect(Buffer.concat(pieces).equals(object)).toBe(true);
  expect(Math.max(...asked.map(([from, to]) => to - from))).toBe(MiB);
  expect(lines).toEqual([]);
});

test('where there are no lines, all comes in windows, and is asked for one line once', async () => {
  const { asked, get } = server();
  let lines = 0;
  const none: GetLine = async () => {
    lines++;
    throw new Error('no such line');
  };
  expect((await all(s3Reader(get, none, systemClock)('k', 'e', 0, object.length))).equals(object)).toBe(true);
  expect(asked.map(([from]) => from)).toEqual(Array.from({ length: 11 }, (_, n) => n * MiB));
  expect(lines).toBe(1);
});

test('a line that breaks is asked again from there; a server that says nothing more is an error', async () => {
  const half = (from: number) =>
    Readable.from(
      (async function* () {
        yield object.subarray(from, from + 50_000);
        throw new Error('reset');
      })(),
    );
  let broken = 0;
  const once = server((from, to) => (to - from > MiB && broken++ === 0 ? half(from) : undefined));
  expect((await all(s3Reader(once.get, once.getLine, systemClock)('k', 'e', 0, object.length))).equals(object)).toBe(true);
  expect(broken).toBeGreaterThan(1);
  const never = server((from) => (from >= 2 * MiB ? half(from) : undefined));
  await expect(all(s3Reader(never.get, never.getLine, systemClock)('k', 'e', 0, object.length))).rejects.toThrow('reset');
});
