import { describe, expect, test } from '@jest/globals';
import { fairLine, fairPlaces } from './fair.js';

const take = (line: ReturnType<typeof fairLine<string, string>>, count: number) => Array.from({ length: count }, () => line.next());
const countOf = (list: readonly unknown[], what: unknown) => list.filter((one) => one === what).length;

describe('a fair line', () => {
  test('gives by weight to those who wait, however much each has put in', () => {
    const line = fairLine<string, string>();
    for (let n = 0; n < 10_000; n++) line.push('loud', { weight: 1, cost: 1 }, 'loud');
    for (let n = 0; n < 300; n++) line.push('quiet', { weight: 3, cost: 1 }, 'quiet');
    const taken = take(line, 400);
    expect(countOf(taken, 'quiet')).toBe(300);
    // At every moment, not only in the end.
    for (let n = 8; n <= 400; n += 8) expect(Math.abs(countOf(taken.slice(0, n), 'quiet') - 0.75 * n)).toBeLessThanOrEqual(3);
    expect(line.size).toBe(9_900);
  });

  test('weighs what is given, not how often', () => {
    const line = fairLine<string, string>();
    for (let n = 0; n < 100; n++) {
      line.push('large', { weight: 1, cost: 10 }, 'large');
      line.push('small', { weight: 1, cost: 1 }, 'small');
    }
    const taken = take(line, 44);
    expect(countOf(taken, 'small')).toBe(40);
  });

  test('who comes anew is next, and has nothing saved up', () => {
    const line = fairLine<string, string>();
    for (let n = 0; n < 1_000; n++) line.push('loud', { weight: 1, cost: 1 }, 'loud');
    take(line, 500);
    for (let n = 0; n < 100; n++) line.push('late', { weight: 1, cost: 1 }, 'late');
    const taken = take(line, 20);
    expect(taken.slice(0, 2)).toContain('late');
    expect(countOf(taken, 'late')).toBe(10);
  });

  test('keeps the order of each key, and every item', () => {
    const line = fairLine<number, [number, number]>();
    const keys = 50;
    for (let n = 0; n < 1_000; n++) line.push(n % keys, { weight: 1 + (n % 7), cost: 1 + (n % 3) }, [n % keys, n]);
    const taken = Array.from({ length: 1_000 }, () => line.next()!);
    expect(line.next()).toBeUndefined();
    for (let key = 0; key < keys; key++) {
      const own = taken.filter(([of]) => of === key).map(([, n]) => n);
      expect(own).toEqual([...own].sort((a, b) => a - b));
    }
    expect(new Set(taken.map(([, n]) => n)).size).toBe(1_000);
  });

  test('what is held waits, and others go on', () => {
    const line = fairLine<string, string>();
    line.push('a', { weight: 1, cost: 1 }, 'a1');
    line.hold('a');
    line.push('a', { weight: 1, cost: 1 }, 'a2');
    line.push('b', { weight: 1, cost: 1 }, 'b');
    expect([line.next(), line.next()]).toEqual(['b', undefined]);
    line.release('a');
    expect([line.next(), line.next(), line.next()]).toEqual(['a1', 'a2', undefined]);
  });
});

describe('places', () => {
  const gate = () => {
    const opens: (() => void)[] = [];
    return { wait: () => new Promise<void>((resolve) => void opens.push(resolve)), opens };
  };
  const settle = () => new Promise<void>((resolve) => void setImmediate(resolve));

  test('are taken at once while there are some; no key has more than its most, and what waits goes by weight', async () => {
    const places = fairPlaces<string>({ places: 4, most: 3 });
    const { wait, opens } = gate();
    const begun: string[] = [];
    const done: Promise<unknown>[] = [];
    const ask = (key: string, weight: number, count: number) => {
      for (let n = 0; n < count; n++)
        done.push(
          places.run(key, weight, () => {
            begun.push(key);
            return wait();
          }),
        );
    };
    ask('loud', 1, 20);
    expect(begun).toEqual(['loud', 'loud', 'loud']);
    ask('quiet', 3, 20);
    expect(begun).toEqual(['loud', 'loud', 'loud', 'quiet']);
    for (let n = 0; n < 16; n++) {
      opens.shift()!();
      await settle();
    }
    expect(countOf(begun.slice(4), 'quiet')).toBeGreaterThanOrEqual(10);
    while (opens.length > 0) {
      opens.shift()!();
      await settle();
    }
    await Promise.all(done);
    expect([begun.length, places.waiting]).toEqual([40, 0]);
  });

  test('who takes what is free while another waits at its most owes nothing to who comes next', async () => {
    const places = fairPlaces<string>({ places: 8, most: 7 });
    const { wait, opens } = gate();
    const done: Promise<unknown>[] = [];
    for (let n = 0; n < 8; n++) done.push(places.run('stuck', 1, wait));
    for (let n = 0; n < 3_000; n++) await places.run('early', 1, async () => {});
    const begun: string[] = [];
    const note = (key: string) => async () => void begun.push(key);
    const free = gate();
    done.push(places.run('late', 1, free.wait));
    for (let n = 0; n < 20; n++) done.push(places.run('late', 1, note('late')));
    done.push(places.run('early', 1, note('early')));
    free.opens.shift()!();
    await settle();
    expect(begun.indexOf('early')).toBeLessThanOrEqual(2);
    while (opens.length > 0) {
      opens.shift()!();
      await settle();
    }
    await Promise.all(done);
  });

  test('work that fails gives its place back', async () => {
    const places = fairPlaces<string>({ places: 1, most: 1 });
    const failed = places.run('a', 1, () => Promise.reject(new Error('no')));
    const next = places.run('b', 1, async () => 'yes');
    await expect(failed).rejects.toThrow('no');
    expect(await next).toBe('yes');
  });
});
