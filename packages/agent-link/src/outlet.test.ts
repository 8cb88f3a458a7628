import { expect, test } from '@jest/globals';
import type { Kept, Up } from './frame.js';
import { sender, window_bytes } from './outlet.js';

const note: Up = { type: 'typing', payload: { on: true } };
const frame = (seq: number, bytes: number): Kept => ({ type: 'commentary', seq, payload: { message_id: 'm', text: 'x'.repeat(bytes) } });
const sending = () => {
  const sent: (number | undefined)[] = [];
  const one = sender({ send: (text) => void sent.push((JSON.parse(text) as { seq?: number }).seq) }, () => ({}));
  return {
    sent,
    ...one,
    get waiting() {
      return one.waiting;
    },
  };
};

test('keeps the order, and waits for acks when the window is full', () => {
  const to = sending();
  const half = window_bytes / 2;
  for (const seq of [1, 2, 3]) to.put(frame(seq, half));
  to.put(note);
  expect(to.sent).toEqual([1, 2]);
  expect(to.waiting).toBe(true);
  to.acked(0);
  expect(to.sent).toEqual([1, 2]);
  to.acked(1);
  expect(to.sent).toEqual([1, 2, 3]);
  to.acked(3);
  expect(to.sent).toEqual([1, 2, 3, undefined]);
  expect(to.waiting).toBe(false);
});

test('one frame goes whatever it weighs', () => {
  const to = sending();
  to.put(frame(1, 2 * window_bytes));
  to.put(frame(2, 1));
  expect(to.sent).toEqual([1]);
  to.acked(1);
  expect(to.sent).toEqual([1, 2]);
});

test('a hundred thousand frames cost no more each than ten', () => {
  const to = sending();
  for (let seq = 1; seq <= 100_000; seq++) to.put(frame(seq, 1_000));
  for (let seq = 1; seq <= 100_000; seq++) to.acked(seq);
  expect(to.sent).toHaveLength(100_000);
});
