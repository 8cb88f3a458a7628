import { describe, expect, test } from '@jest/globals';
import { manualClock } from './manual-clock.js';

describe('manualClock', () => {
  test('timers run in the order they are due, equal ones as they were set, and see their own time', async () => {
    const clock = manualClock(0);
    const seen: string[] = [];
    const note = (name: string) => () => void seen.push(`${name}@${clock.now()}`);
    clock.after(20, note('b'));
    clock.after(10, note('a'));
    clock.after(20, note('c'));
    clock.after(31, note('late'));
    await clock.advance(30);
    expect(seen).toEqual(['a@10', 'b@20', 'c@20']);
    expect(clock.now()).toBe(30);
    expect(clock.untilNext()).toBe(1);
    await clock.advance(1);
    expect(seen.at(-1)).toBe('late@31');
    expect(clock.timers).toBe(0);
  });

  test('what a timer sets off is finished before the next one, promises and `soon` included', async () => {
    const clock = manualClock(0);
    const seen: string[] = [];
    clock.after(10, () => {
      void (async () => {
        for (let i = 0; i < 50; i++) await Promise.resolve();
        clock.soon(() => {
          void Promise.resolve().then(() => clock.soon(() => void seen.push(`chain@${clock.now()}`)));
        });
      })();
    });
    clock.after(11, () => void seen.push('next'));
    await clock.advance(11);
    expect(seen).toEqual(['chain@10', 'next']);
  });

  test('a timer set by a timer runs in the same advance when it is due', async () => {
    const clock = manualClock(0);
    const at: number[] = [];
    clock.after(10, () => clock.after(10, () => at.push(clock.now())));
    await clock.advance(25);
    expect(at).toEqual([20]);
  });

  test('every: keeps its pace, and cancelling ends it, also from inside', async () => {
    const clock = manualClock(0);
    const at: number[] = [];
    const timer = clock.every(10, () => {
      at.push(clock.now());
      if (at.length === 3) timer.cancel();
    });
    await clock.advance(100);
    expect(at).toEqual([10, 20, 30]);
    expect(clock.timers).toBe(0);
  });

  test('a timer cancelled by an earlier one of the same instant does not run', async () => {
    const clock = manualClock(0);
    let ran = false;
    clock.after(10, () => second.cancel());
    const second = clock.after(10, () => {
      ran = true;
    });
    await clock.advance(10);
    expect(ran).toBe(false);
  });

  test('`soon` runs by itself, in order, in one go, and without time passing', async () => {
    const clock = manualClock(0);
    const seen: number[] = [];
    const done = new Promise<void>((resolve) => {
      clock.soon(() => void seen.push(1));
      clock.soon(() => void seen.push(2));
      clock.soon(resolve);
    });
    expect(seen).toEqual([]);
    await done;
    expect(seen).toEqual([1, 2]);
    expect(clock.now()).toBe(0);
  });

  test('advances asked for at once pass one after the other', async () => {
    const clock = manualClock(0);
    const at: number[] = [];
    clock.after(15, () => at.push(clock.now()));
    await Promise.all([clock.advance(10), clock.advance(10)]);
    expect(at).toEqual([15]);
    expect(clock.now()).toBe(20);
  });

  test('what a timer throws comes out of advance, once', async () => {
    const clock = manualClock(0);
    clock.after(1, () => {
      throw new Error('boom');
    });
    await expect(clock.advance(5)).rejects.toThrow('boom');
    await clock.advance(5);
    expect(clock.now()).toBe(6);
  });
});
