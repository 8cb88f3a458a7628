import { expect, test } from '@jest/globals';
import { type ServerEvent, serverEvents } from './sse.js';

async function read(chunks: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of serverEvents(
    (async function* () {
      yield* chunks;
    })(),
  ))
    events.push(event);
  return events;
}
const bytes = (text: string) => new TextEncoder().encode(text);

const text =
  '\ufeff: a comment\r\n\r\ndata: {"a":"ü😀"}\r\n\r\nevent: error\ndata:no blank\ndata:\ndata: third\nid: 7\n\nretry: 5\rdata: cr\r\rnothing: x\n\ndata\n\ndata: last';
const expected = [
  { event: 'message', data: '{"a":"ü😀"}' },
  { event: 'error', data: 'no blank\n\nthird', id: '7' },
  { event: 'message', data: 'cr' },
  { event: 'message', data: '' },
  { event: 'message', data: 'last' },
];

test('all kinds of lines, in one chunk', async () => {
  expect(await read([bytes(text)])).toEqual(expected);
});

test('however it is cut: at every byte, and byte by byte', async () => {
  const all = bytes(text);
  for (let at = 1; at < all.length; at++) expect(await read([all.subarray(0, at), all.subarray(at)])).toEqual(expected);
  expect(await read(Array.from(all, (byte) => Uint8Array.of(byte)))).toEqual(expected);
});

test('an event without an end is no event', async () => {
  const endless = Array.from({ length: 5 }, () => new Uint8Array(1024 * 1024).fill(120));
  await expect(read([bytes('data: '), ...endless])).rejects.toThrow('too long');
  const lines = Array.from({ length: 600 }, () => bytes(`data: ${'x'.repeat(8_192)}\n`));
  await expect(read(lines)).rejects.toThrow('too long');
});
