import { manualClock } from '@iris/runtime/testing';
import { describe, expect, test } from '@jest/globals';
import { BusTimeout, NoResponders } from './bus.js';
import { type Delivery, memoryHub } from './memory-bus.js';

const bytes = (...values: number[]) => new Uint8Array(values);

/** A hub that hands nothing over by itself. */
function held() {
  const clock = manualClock(0);
  const waiting: Delivery[] = [];
  const hub = memoryHub({ clock, deliver: (delivery) => waiting.push(delivery), poison: true });
  const [a, b] = [hub.connect('a'), hub.connect('b')];
  const heard: number[] = [];
  b.subscribe('s', (data) => heard.push(...data));
  return { clock, hub, a, b, waiting, heard };
}

describe('what tests can do to the bus in memory', () => {
  test('deliveries say what they are, and can be delayed, reordered, repeated and lost', () => {
    const { a, waiting, heard } = held();
    for (const value of [1, 2, 3, 4]) a.publish('s', bytes(value));
    expect(heard).toEqual([]);
    expect(waiting[0]).toMatchObject({ kind: 'publish', subject: 's', from: 'a', to: 'b', bytes: 1 });
    for (const i of [2, 0, 0, 3]) waiting[i]!.run();
    expect(heard).toEqual([3, 1, 1, 4]);
  });

  test('a repeated request is handled twice and answered once; a lost one times out on the clock', async () => {
    const { clock, a, b, waiting } = held();
    let handled = 0;
    b.serve('r', () => bytes(++handled));
    const first = a.request('r', bytes(), { timeout_ms: 100 });
    waiting[0]!.run();
    waiting[0]!.run();
    for (const delivery of waiting.slice(1)) delivery.run();
    expect([...(await first)]).toEqual([1]);
    expect(handled).toBe(2);
    const lost = a.request('r', bytes(), { timeout_ms: 100 });
    const failed = expect(lost).rejects.toBeInstanceOf(BusTimeout);
    await clock.advance(100);
    await failed;
    expect(clock.timers).toBe(0);
  });

  test('a connection that lost the broker neither sends nor hears, and serves nobody', async () => {
    const { clock, a, b, waiting, heard } = held();
    const changes: boolean[] = [];
    b.onConnected((connected) => changes.push(connected));
    b.serve('r', () => bytes());
    a.publish('s', bytes(1));
    b.setConnected(false);
    waiting[0]!.run();
    a.publish('s', bytes(2));
    waiting[1]!.run();
    expect(heard).toEqual([]);
    await expect(a.request('r', bytes(), { timeout_ms: 100 })).rejects.toBeInstanceOf(NoResponders);
    const silent = expect(b.request('r', bytes(), { timeout_ms: 100 })).rejects.toBeInstanceOf(BusTimeout);
    const flushed = expect(b.flush()).rejects.toBeInstanceOf(BusTimeout);
    await clock.advance(2_000);
    await Promise.all([silent, flushed]);
    b.setConnected(true);
    a.publish('s', bytes(3));
    waiting.at(-1)!.run();
    expect(heard).toEqual([3]);
    expect(changes).toEqual([false, true]);
  });

  test('what a handler kept without copying is spoilt', () => {
    const { a, b, waiting } = held();
    let kept: Uint8Array = bytes();
    b.subscribe('k', (data) => {
      kept = data;
    });
    a.publish('k', bytes(1, 2));
    waiting[0]!.run();
    expect([...kept]).toEqual([0xa5, 0xa5]);
  });
});
