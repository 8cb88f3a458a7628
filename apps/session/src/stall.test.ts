import type { Clock } from '@iris/runtime';
import { expect, test } from '@jest/globals';
import { stallWatch } from './stall.js';

test('C75: what waited while the process stood still is in doubt, also before its first timer; a second later nothing is', () => {
  let now = 0;
  let tick = () => {};
  const clock: Pick<Clock, 'now' | 'every'> = {
    now: () => now,
    every: (_, run) => {
      tick = run;
      return { cancel() {} };
    },
  };
  const stall = stallWatch(clock as Clock);
  for (; now <= 10_000; now += 250) tick();
  expect(stall.doubtful()).toBe(false);
  // Frozen: time passes and nothing runs.
  now = 12_000;
  expect(stall.doubtful()).toBe(false);
  now = 14_000;
  expect(stall.doubtful()).toBe(true);
  tick();
  expect(stall.doubtful()).toBe(true);
  now = 14_900;
  expect(stall.doubtful()).toBe(true);
  tick();
  now = 15_100;
  tick();
  expect(stall.doubtful()).toBe(false);
});

test('ORD3: a clock that jumps ahead and back leaves no doubt behind', () => {
  let now = 0;
  let tick = () => {};
  const clock: Pick<Clock, 'now' | 'every'> = {
    now: () => now,
    every: (_, run) => {
      tick = run;
      return { cancel() {} };
    },
  };
  const stall = stallWatch(clock as Clock);
  now = 600_000;
  tick();
  expect(stall.doubtful()).toBe(true);
  now = 1_000;
  tick();
  expect(stall.doubtful()).toBe(false);
});
