import { timeline } from '@iris/testkit';
import { expect, test } from '@jest/globals';
import { stallWatch } from './stall.js';

test('C75: what waited while the process stood still is in doubt, also before its first timer; a second later nothing is', async () => {
  const time = timeline();
  const clock = time.process('session');
  const stall = stallWatch(clock);
  await time.advance(60_000);
  expect(stall.doubtful()).toBe(false);
  clock.freeze();
  await time.advance(2_000);
  expect(stall.doubtful()).toBe(false);
  await time.advance(2_000);
  expect(stall.doubtful()).toBe(true);
  clock.thaw();
  await time.settle();
  expect(stall.doubtful()).toBe(true);
  await time.advance(900);
  expect(stall.doubtful()).toBe(true);
  await time.advance(200);
  expect(stall.doubtful()).toBe(false);
  stall.end();
});
