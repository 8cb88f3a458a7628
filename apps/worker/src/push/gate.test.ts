import { manualClock } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import { gate } from './gate.js';

test('so many at once, so many a second, in the order they came', async () => {
  const clock = manualClock();
  const one = gate({ clock, at_once: 3, per_second: 10 });
  const inside: { n: number; at: number; leave: () => void }[] = [];
  const began = clock.now();
  for (let n = 0; n < 20; n++) void one.enter().then((leave) => void inside.push({ n, at: clock.now() - began, leave }));
  await clock.settle();
  expect(inside.map(({ n }) => n)).toEqual([0, 1, 2]);
  let left = 0;
  for (let i = 0; i < 60 && inside.length < 20; i++) {
    while (left < inside.length) inside[left++]!.leave();
    await clock.advance(50);
  }
  expect(inside.map(({ n }) => n)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  // Ten are there at once, the other ten come at ten a second.
  expect(inside[19]!.at).toBeGreaterThanOrEqual(900);
  expect(inside[19]!.at).toBeLessThan(1_400);
});

test('a place is given back once', async () => {
  const clock = manualClock();
  const one = gate({ clock, at_once: 1, per_second: 1_000 });
  const leave = await one.enter();
  leave();
  leave();
  let entered = 0;
  for (let i = 0; i < 2; i++) void one.enter().then(() => entered++);
  await clock.advance(100);
  expect(entered).toBe(1);
});
