import { expect, test } from '@jest/globals';
import type { Down } from './frame.js';
import { inbox } from './inbox.js';

const frame = (seq?: number): Down => ({ type: 'agent.stop', payload: {}, ...(seq === undefined ? {} : { seq }) });

function taking(from = 0, handle: (frame: Down) => void | Promise<void> = () => {}) {
  const seen: string[] = [];
  const box = inbox({
    from,
    handle(one) {
      seen.push(`handle ${one.seq}`);
      return handle(one);
    },
    again: (one) => seen.push(`again ${one.seq}`),
    processed: (seq) => seen.push(`processed ${seq}`),
    gap: (expected, got) => seen.push(`gap ${expected} ${got}`),
    fault: (error) => seen.push(`fault ${(error as Error).message}`),
  });
  return { seen, box };
}

test('each frame once, in order, however often it comes; one of an earlier process not at all', () => {
  const { seen, box } = taking(4);
  for (const seq of [4, 5, 6, 5, 6, 7]) box.take(frame(seq));
  expect(seen).toEqual(['again 4', 'handle 5', 'processed 5', 'handle 6', 'processed 6', 'again 5', 'again 6', 'handle 7', 'processed 7']);
});

test('what has no number is handled as often as it comes', () => {
  const { seen, box } = taking();
  box.take(frame());
  box.take(frame());
  expect(seen).toEqual(['handle undefined', 'handle undefined']);
});

test('a gap is not stepped over, until a new connection begins with the same gap', () => {
  const { seen, box } = taking();
  box.resumed();
  box.take(frame(3));
  box.take(frame(4));
  expect(seen).toEqual(['gap 1 3', 'gap 1 4']);
  box.resumed();
  box.take(frame(3));
  box.take(frame(4));
  expect(seen.slice(2)).toEqual(['handle 3', 'processed 3', 'handle 4', 'processed 4']);
  box.take(frame(6));
  expect(seen.at(-1)).toBe('gap 5 6');
});

test('a frame that came after all is handled, and its gap forgotten', () => {
  const { seen, box } = taking();
  box.take(frame(2));
  box.resumed();
  box.take(frame(1));
  box.take(frame(2));
  box.take(frame(4));
  expect(seen).toEqual(['gap 1 2', 'handle 1', 'processed 1', 'handle 2', 'processed 2', 'gap 3 4']);
});

test('one that takes its time holds the ack, not those behind it', async () => {
  const done: (() => void)[] = [];
  const { seen, box } = taking(0, ({ seq }) => (seq === 3 ? undefined : new Promise<void>((resolve) => done.push(resolve))));
  for (const seq of [1, 2, 3]) box.take(frame(seq));
  expect(seen).toEqual(['handle 1', 'handle 2', 'handle 3']);
  done[1]!();
  await new Promise(setImmediate);
  expect(seen).toHaveLength(3);
  done[0]!();
  await new Promise(setImmediate);
  expect(seen.slice(3)).toEqual(['processed 3']);
});

test('one that fails, now or later, is done with', async () => {
  const { seen, box } = taking(0, ({ seq }) => {
    if (seq === 1) throw new Error('now');
    return Promise.reject(new Error('later'));
  });
  box.take(frame(1));
  box.take(frame(2));
  await new Promise(setImmediate);
  expect(seen).toEqual(['handle 1', 'fault now', 'processed 1', 'handle 2', 'fault later', 'processed 2']);
});
