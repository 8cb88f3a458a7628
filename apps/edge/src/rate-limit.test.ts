import { admit, networkOf } from '@iris/runtime';
import { describe, expect, test } from '@jest/globals';
import { addresses } from './rate-limit.js';

describe('admit', () => {
  /** How many of `tries` at one instant pass. */
  const burst = (from: number, now: number, per_second: number, size: number, tries: number) => {
    let full_at = from;
    let passed = 0;
    for (let i = 0; i < tries; i++) {
      const next = admit(full_at, now, per_second, size);
      if (next < 0) continue;
      full_at = next;
      passed++;
    }
    return { passed, full_at };
  };

  test('LIM6 a burst passes whole, and then as many a second as the rate says', () => {
    const first = burst(0, 1_000_000, 20, 300, 400);
    expect(first.passed).toBe(300);
    const second = burst(first.full_at, 1_001_000, 20, 300, 100);
    expect(second.passed).toBe(20);
    // After a long silence the bucket is full and no fuller.
    expect(burst(second.full_at, 2_000_000, 20, 300, 400).passed).toBe(300);
  });

  test('ERR4 a refusal says how long to wait, and waiting that long is enough', () => {
    const { full_at } = burst(0, 5_000, 10, 2, 2);
    const wait = -admit(full_at, 5_000, 10, 2);
    expect(wait).toBeCloseTo(100);
    expect(admit(full_at, 5_000 + Math.ceil(wait), 10, 2)).toBeGreaterThan(0);
    expect(admit(full_at, 5_000 + Math.ceil(wait) - 2, 10, 2)).toBeLessThan(0);
  });

  test('a clock that steps back locks nobody out', () => {
    const { full_at } = burst(0, 10_000_000, 20, 300, 300);
    expect(burst(full_at, 1_000, 20, 300, 400).passed).toBe(300);
  });

  test('a rate of nothing lets nothing pass', () => {
    expect(admit(0, 1_000, 0, 10)).toBeLessThan(0);
    expect(admit(0, 1_000, 10, 0)).toBeLessThan(0);
  });
});

describe('networkOf', () => {
  test.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['0000:0000:0000:0000:0000:ffff:7f00:0001', '127.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:0db8:0001:0002::1', '2001:db8:1:2'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['', ''],
  ])('%s is limited as %s', (address, network) => expect(networkOf(address)).toBe(network));
});

describe('addresses', () => {
  const config = { sockets_before_hello: 2, hello_failures_per_minute: 10, hello_failures_burst: 20 };

  test('LIM9 so many sockets before hello, counted by network', () => {
    const all = addresses(config);
    expect(all.enter('2001:db8:0:1::1')).toBe(true);
    expect(all.enter('2001:db8:0:1::2')).toBe(true);
    expect(all.enter('2001:db8:0:1::3')).toBe(false);
    expect(all.enter('2001:db8:0:2::1')).toBe(true);
    all.leave('2001:db8:0:1::1');
    expect(all.enter('2001:db8:0:1::3')).toBe(true);
  });

  /** Each attempt's outcome: 0, the milliseconds to wait, or undefined while it waits. */
  const tries = (all: ReturnType<typeof addresses>, n: number, now: number, address = 'a') =>
    Array.from({ length: n }, () => {
      const one: { wait?: number } = {};
      all.attempt(address, now, (wait) => {
        one.wait = wait;
        return wait === 0;
      });
      return one;
    });
  const passed = (some: readonly { wait?: number }[]) => some.filter((one) => one.wait === 0).length;

  test('LIM8 20 failed hellos, then one in 6 s', () => {
    const all = addresses(config);
    const first = tries(all, 50, 60_000);
    expect(passed(first)).toBe(20);
    // The others wait for those that are being tried; each that fails brings none of them in.
    for (let i = 0; i < 19; i++) all.tried('a', 60_000, false);
    expect(first.filter((one) => one.wait === undefined)).toHaveLength(30);
    all.tried('a', 60_000, false);
    expect(first.filter((one) => (one.wait ?? 0) > 5_999)).toHaveLength(30);
    expect(passed(tries(all, 50, 66_001))).toBe(1);
    expect(passed(tries(all, 1, 66_001, 'b'))).toBe(1);
  });

  test('LIM8 any number of good ones from one address come in, some at a time', () => {
    const all = addresses(config);
    const many = tries(all, 5_000, 60_000);
    let done = 0;
    for (let open = passed(many); open > done; open = passed(many)) {
      expect(open - done).toBeLessThanOrEqual(20);
      all.tried('a', 60_000, true);
      done++;
    }
    expect(done).toBe(5_000);
  });

  test('one that is gone when its turn comes costs nothing', () => {
    const all = addresses(config);
    const first = tries(all, 20, 60_000);
    all.attempt('a', 60_000, () => false);
    const [last] = tries(all, 1, 60_000);
    all.tried('a', 60_000, true);
    expect(passed(first)).toBe(20);
    expect(last!.wait).toBe(0);
  });

  test('what owes nothing is forgotten', () => {
    const all = addresses(config);
    all.enter('a');
    tries(all, 1, 1_000, 'b');
    all.tried('b', 1_000, false);
    all.sweep(2_000);
    expect(all.size).toBe(2);
    all.leave('a');
    all.sweep(1_000_000);
    expect(all.size).toBe(0);
  });
});
