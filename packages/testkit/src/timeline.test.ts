import { expect, test } from '@jest/globals';
import { chance } from './chance.js';
import { timeline } from './timeline.js';

test('timers run in the order they are due, and what they set off before the next', async () => {
  const time = timeline();
  const clock = time.process('p');
  const seen: string[] = [];
  clock.after(20, () => seen.push('20'));
  clock.after(10, () => {
    seen.push('10');
    void Promise.resolve().then(() => seen.push('promise of 10'));
    clock.soon(() => seen.push('soon of 10'));
  });
  clock.after(10, () => seen.push('10 again'));
  await time.advance(15);
  expect(seen).toEqual(['10', 'promise of 10', '10 again', 'soon of 10']);
  await time.advance(5);
  expect(seen.at(-1)).toBe('20');
  expect(time.timers).toBe(0);
});

test('every repeats until cancelled, and cancelled timers never run', async () => {
  const time = timeline();
  const clock = time.process('p');
  let count = 0;
  const timer = clock.every(10, () => count++);
  const one = clock.after(5, () => {
    count += 100;
  });
  one.cancel();
  await time.advance(35);
  expect(count).toBe(3);
  timer.cancel();
  await time.advance(100);
  expect(count).toBe(3);
  expect(time.timers).toBe(0);
});

test('a killed process never runs again; a frozen one runs late, without the ticks it missed', async () => {
  const time = timeline();
  const [a, b] = [time.process('a'), time.process('b')];
  const seen: string[] = [];
  a.after(10, () => seen.push('a'));
  a.soon(() => seen.push('a soon'));
  b.every(10, () => seen.push('b'));
  a.kill();
  a.after(1, () => seen.push('a after death'));
  b.freeze();
  await time.advance(50);
  expect(seen).toEqual([]);
  b.thaw();
  await time.settle();
  expect(seen).toEqual(['b']);
  await time.advance(10);
  expect(seen).toEqual(['b', 'b']);
});

test('until stops at the first instant at which something is found', async () => {
  const time = timeline();
  const clock = time.process('p');
  const start = time.now();
  let there = false;
  clock.after(70, () => {
    there = true;
  });
  clock.after(90, () => {});
  expect(await time.until(() => (there ? 'found' : undefined), 1_000)).toBe('found');
  expect(time.now() - start).toBe(70);
  expect(await time.until(() => undefined, 30)).toBeUndefined();
  expect(time.now() - start).toBe(100);
});

test('a seed decides who of several runs first, the same each time; order within one process stays', async () => {
  const run = async (seed: number) => {
    const time = timeline({ shuffle: chance(seed) });
    const seen: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      const clock = time.process(name);
      for (let i = 0; i < 4; i++) clock.soon(() => seen.push(`${name}${i}`));
    }
    await time.settle();
    return seen;
  };
  const first = await run(1);
  expect(await run(1)).toEqual(first);
  const others = await Promise.all([2, 3, 4, 5].map(run));
  expect(others.some((other) => other.join() !== first.join())).toBe(true);
  for (const order of [first, ...others])
    for (const name of ['a', 'b', 'c']) expect(order.filter((one) => one[0] === name)).toEqual([0, 1, 2, 3].map((i) => `${name}${i}`));
});

test('a test that holds an instant is not overtaken by one that waits', async () => {
  const time = timeline();
  const clock = time.process('p');
  let ticks = 0;
  clock.every(10, () => {
    ticks++;
  });
  const waiting = time.until(() => (ticks === 3 ? ticks : undefined), 1_000);
  await time.settle();
  expect(ticks).toBe(0);
  await time.advance(10);
  expect(ticks).toBe(1);
  expect(await waiting).toBe(3);
});

test('what a timer throws reaches the test', async () => {
  const time = timeline();
  const clock = time.process('p');
  clock.after(10, () => {
    throw new Error('in a timer');
  });
  await expect(time.until(() => undefined, 100)).rejects.toThrow('in a timer');
  clock.after(10, () => {
    throw new Error('again');
  });
  await expect(time.advance(100)).rejects.toThrow('again');
});
