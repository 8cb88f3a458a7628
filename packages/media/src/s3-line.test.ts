import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@iris/runtime';
import { manualClock } from '@iris/runtime/testing';
import { afterEach, expect, test } from '@jest/globals';
import { openLine, piece_bytes } from './s3-line.js';

const object = Buffer.alloc(30 * piece_bytes + 77, 'what comes is what is there ');
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A server of files, which answers as it is told; by default as servers of files do. */
async function serving(answer: (res: ServerResponse, from: number, to: number) => void = plainly) {
  const heard: { url: string | undefined; range: string | undefined; token: unknown; closed: Promise<void> }[] = [];
  const server = createServer((req, res) => {
    const [from = 0, last = 0] =
      /(\d+)-(\d+)/
        .exec(req.headers.range ?? '')
        ?.slice(1)
        .map(Number) ?? [];
    const closed = new Promise<void>((resolve) => void req.socket.on('close', () => resolve()));
    heard.push({ url: req.url, range: req.headers.range, token: req.headers['x-token'], closed });
    answer(res, from, last + 1);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  // What is not about time does not depend on how busy the machine is.
  const open = (from: number, to: number, clock = manualClock()) =>
    openLine(
      {
        ...{ protocol: 'http:', hostname: '127.0.0.1', port, path: '/bucket/a%20b', query: { 'x-id': 'Get Object' } },
        headers: { host: `127.0.0.1:${port}`, range: `bytes=${from}-${to - 1}`, 'x-token': 'signed' },
      },
      { from, to },
      clock,
    );
  return { heard, open };
}
const headOf = (from: number, to: number) => ({ 'content-length': to - from, 'content-range': `bytes ${from}-${to - 1}/${object.length}` });
function plainly(res: ServerResponse, from: number, to: number): void {
  res.writeHead(206, headOf(from, to));
  res.end(object.subarray(from, to));
}
async function all(bytes: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes!) pieces.push(new Uint8Array(piece));
  return Buffer.concat(pieces);
}

test('what was signed is what is asked; whole pieces come, the last one shorter, and the line ends', async () => {
  const { heard, open } = await serving();
  const sizes: number[] = [];
  const came: Uint8Array[] = [];
  for await (const piece of (await open(5, object.length))!) {
    sizes.push(piece.byteLength);
    came.push(new Uint8Array(piece));
  }
  expect(Buffer.concat(came).equals(object.subarray(5))).toBe(true);
  expect(sizes).toEqual([...Array.from({ length: 30 }, () => piece_bytes), 72]);
  expect(heard[0]).toMatchObject({ url: '/bucket/a%20b?x-id=Get%20Object', range: `bytes=5-${object.length - 1}`, token: 'signed' });
  await heard[0]!.closed;
});

test('however the bytes are cut on the way, the same come', async () => {
  for (const step of [1_000, 65_535, 65_537, 200_000]) {
    const { open } = await serving((res, from, to) => {
      res.writeHead(206, headOf(from, to));
      const next = (at: number): unknown =>
        at >= to ? res.end() : res.write(object.subarray(at, Math.min(to, at + step)), () => next(at + step));
      next(from);
    });
    expect((await all(await open(3, object.length))).equals(object.subarray(3))).toBe(true);
  }
});

test('C90: the memory of a piece is used again once the next is asked for, and not before', async () => {
  const { open } = await serving();
  const places = new Set<number>();
  let at = 0;
  for await (const piece of (await open(0, object.length))!) {
    // All that the server may send meanwhile has come.
    await new Promise((resolve) => void setImmediate(() => setImmediate(resolve)));
    expect(object.subarray(at, at + piece.byteLength).equals(piece)).toBe(true);
    at += piece.byteLength;
    places.add(piece.byteOffset);
  }
  expect(at).toBe(object.length);
  expect(places.size).toBeLessThanOrEqual(8);
});

test('PUL2: a reader that stops loses its line, and has what came', async () => {
  const clock = manualClock();
  const { heard, open } = await serving();
  const came: Uint8Array[] = [];
  for await (const piece of (await open(0, object.length, clock))!) {
    came.push(new Uint8Array(piece));
    if (came.length !== 2) continue;
    await clock.advance(1_000);
    await heard[0]!.closed;
  }
  expect(came.length).toBeLessThan(12);
  expect(Buffer.concat(came).equals(object.subarray(0, came.length * piece_bytes))).toBe(true);
});

test('a server that falls silent is given up on, before its answer and in it', async () => {
  const silent = manualClock();
  let asked = () => {};
  const came = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const never = (await serving(() => asked())).open(0, object.length, silent);
  await came;
  await silent.advance(6_000);
  expect(await never).toBeUndefined();
  const clock = manualClock();
  const { heard, open } = await serving((res, from, to) => {
    res.writeHead(206, headOf(from, to));
    res.write(object.subarray(from, from + piece_bytes));
  });
  const line = (await open(0, object.length, clock))!;
  expect((await line.next()).value?.byteLength).toBe(piece_bytes);
  const more = line.next();
  await clock.advance(6_000);
  expect(await more).toEqual({ done: true, value: undefined });
  await heard[0]!.closed;
});

test('a line that breaks ends short; one that its reader leaves is closed', async () => {
  const { heard, open } = await serving((res, from, to) => {
    res.writeHead(206, headOf(from, to));
    res.write(object.subarray(from, from + 3 * piece_bytes + 5), () => res.destroy());
  });
  expect((await all(await open(0, object.length))).equals(object.subarray(0, 3 * piece_bytes))).toBe(true);
  for await (const _ of (await open(0, object.length))!) break;
  await heard[1]!.closed;
});

test.each<[string, (res: ServerResponse, from: number, to: number) => void]>([
  ['an error', (res) => void res.writeHead(404).end()],
  ['all of the object', (res) => void res.writeHead(200, { 'content-length': object.length }).end(object)],
  ['another range', (res, from, to) => void res.writeHead(206, { ...headOf(from + 1, to + 1) }).end(object.subarray(from, to))],
  ['fewer bytes', (res, from, to) => void res.writeHead(206, headOf(from, to - 1)).end(object.subarray(from, to - 1))],
  [
    'bytes in chunks',
    (res, from, to) =>
      void res
        .writeHead(206, { 'content-range': `bytes ${from}-${to - 1}/${object.length}`, 'transfer-encoding': 'chunked' })
        .end(object.subarray(from, to)),
  ],
  ['a head without an end', (res) => void res.socket?.write(`HTTP/1.1 206 Yes\r\nx: ${'y'.repeat(40_000)}`)],
  ['nothing', (res) => void res.socket?.destroy()],
])('an answer of another form is no line: %s', async (_, answer) => {
  const { heard, open } = await serving(answer);
  expect(await open(10, 200_010)).toBeUndefined();
  await heard[0]!.closed;
});

test('nobody there, or a question that it cannot write: no line', async () => {
  const request = { protocol: 'http:', hostname: '127.0.0.1', port: 1, path: '/', headers: {} };
  expect(await openLine(request, { from: 0, to: 1 }, systemClock)).toBeUndefined();
  expect(await openLine({ ...request, query: { a: ['b', 'c'] } }, { from: 0, to: 1 }, systemClock)).toBeUndefined();
});
