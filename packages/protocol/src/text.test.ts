import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  cleanText,
  cleanValue,
  exceedsBytes,
  exceedsCodePoints,
  firstCodePoints,
  isDeeperThan,
  nestsDeeperThan,
  utf8Length,
} from './text.js';

const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)), maxLength: 60 });
const bytesOf = (text: string) => new TextEncoder().encode(text).length;

describe('text', () => {
  test('cleanText leaves what UTF-8 and Postgres can hold, and is done after once', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const clean = cleanText(text);
        expect(clean).not.toMatch(/\0/);
        expect(new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(clean))).toBe(clean);
        expect(clean.length).toBe(text.length);
        expect(cleanText(clean)).toBe(clean);
      }),
    );
    expect(cleanText('😀')).toBe('😀');
  });

  test('cleanValue gives back the very same value when there is nothing to clean', () => {
    const value = { a: ['😀', { b: null }], __proto__: 1 };
    expect(cleanValue(value)).toBe(value);
    expect(cleanValue({ a: ['x', { 'k\0': '\ud800' }] })).toEqual({ a: ['x', { 'k\ufffd': '\ufffd' }] });
  });

  test('bytes and code points are counted as the standards say', () => {
    fc.assert(
      fc.property(anyText, fc.nat(70), (text, max) => {
        expect(utf8Length(text)).toBe(bytesOf(text));
        expect(exceedsBytes(text, max)).toBe(bytesOf(text) > max);
        expect(exceedsCodePoints(text, max)).toBe([...text].length > max);
        expect(firstCodePoints(text, max)).toBe([...text].slice(0, max).join(''));
      }),
      { numRuns: 1_000 },
    );
  });

  test('depth, of values and of their source', () => {
    const depthOf = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(6), (value, max) => {
        expect(isDeeperThan(value, max)).toBe(depthOf(value) > max);
        expect(nestsDeeperThan(JSON.stringify(value), max)).toBe(depthOf(value) > max);
      }),
      { numRuns: 1_000 },
    );
    expect(nestsDeeperThan('["\\\\","[[[[",[]]', 2)).toBe(false);
    expect(nestsDeeperThan('["a\\\\\\"[[[["]', 1)).toBe(false);
    expect(nestsDeeperThan('"unended [[[', 0)).toBe(false);
  });
});
