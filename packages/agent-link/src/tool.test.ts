import { manualClock } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import type { UpBody } from './frame.js';
import { createToolbox } from './tool.js';

test('arguments that are too large or too deep are shown by their beginning, odd ones left out', () => {
  const kept: UpBody[] = [];
  const tools = createToolbox({
    clock: manualClock(),
    keep: (body) => kept.push(body),
    pass: () => true,
    over: () => false,
    changed: () => {},
  });
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { in: deep(levels - 1) });
  tools.begin('large', { args: 'x'.repeat(200_000) });
  tools.begin('deep', { args: deep(30) });
  tools.begin('fine', { args: deep(20) });
  tools.begin('none', { args: () => {} });
  const args = kept.map((body) => (body.type === 'tool.start' ? body.payload.args : undefined));
  expect(args[0]).toEqual({ truncated: `"${'x'.repeat(1_999)}` });
  expect(args[1]).toEqual({ truncated: JSON.stringify(deep(30)) });
  expect(args[2]).toEqual(deep(20));
  expect(args[3]).toBeUndefined();
});

test('an output is shown by its tail, which never begins in the middle of a character', () => {
  const kept: UpBody[] = [];
  const tools = createToolbox({
    clock: manualClock(),
    keep: (body) => kept.push(body),
    pass: () => true,
    over: () => false,
    changed: () => {},
  });
  tools.begin('x').end({ output_preview: `🌈${'y'.repeat(1_999)}` });
  tools.begin('x').end({ output_preview: '🌈'.repeat(2_000) });
  const outputs = kept.flatMap((body) => (body.type === 'tool.end' ? [body.payload.output_preview] : []));
  expect(outputs).toEqual(['y'.repeat(1_999), '🌈'.repeat(1_000)]);
});
