import type { TenantId } from '@iris/protocol';
import { manualClock } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import { gate } from './gate.js';

const tenant = 'tn1' as TenantId;

test('so many at once, so many a second, in the order they came', async () => {
  const clock = manualClock();
  const one = gate({ clock, at_once: 3, per_second: 10 });
  const inside: { n: number; at: number; leave: () => void }[] = [];
  const began = clock.now();
  for (let n = 0; n < 20; n++) void one.enter(tenant).then((leave) => void inside.push({ n, at: clock.now() - began, leave }));
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
  const leave = await one.enter(tenant);
  leave();
  leave();
  let entered = 0;
  for (let i = 0; i < 2; i++) void one.enter(tenant).then(() => entered++);
  await clock.advance(100);
  expect(entered).toBe(1);
});

test('LIM16: a tenant with much to say lets others in between', async () => {
  const clock = manualClock();
  const one = gate({ clock, at_once: 1, per_second: 1_000 });
  const inside: string[] = [];
  const come = (of: string) =>
    void one.enter(of as TenantId).then((leave) => {
      inside.push(of);
      leave();
    });
  for (let n = 0; n < 200; n++) come('loud');
  for (let n = 0; n < 3; n++) come('quiet');
  await clock.settle();
  await clock.advance(1_000);
  expect(inside).toHaveLength(203);
  expect(inside.slice(0, 8).filter((of) => of === 'quiet')).toHaveLength(3);
});
