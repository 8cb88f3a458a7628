import { expect, test } from '@jest/globals';
import { partBuffer } from './part-buffer.js';

test('parts of exactly the size, whatever the chunks, then the rest', () => {
  const data = Uint8Array.from({ length: 1_000 }, (_, n) => n % 251);
  for (const chunk of [1, 3, 64, 99, 100, 101, 250, 1_000]) {
    const buffer = partBuffer(100);
    const parts: Uint8Array[] = [];
    for (let at = 0; at < 995; at += chunk) parts.push(...buffer.add(data.subarray(at, Math.min(995, at + chunk))));
    expect(parts.map((part) => part.byteLength)).toEqual(Array(9).fill(100));
    expect(buffer.parts).toBe(9);
    expect(Buffer.concat([...parts, buffer.rest()]).equals(data.subarray(0, 995))).toBe(true);
    expect(buffer.rest().byteLength).toBe(0);
  }
});

test('what is given is copied', () => {
  const buffer = partBuffer(4);
  const chunk = Uint8Array.of(1, 2, 3, 4, 5);
  const [part] = buffer.add(chunk);
  chunk.fill(0);
  expect([...part!]).toEqual([1, 2, 3, 4]);
  expect([...buffer.rest()]).toEqual([5]);
});
