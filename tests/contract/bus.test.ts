import { type Bus, BusTimeout, memoryHub, NoResponders, natsBus } from '@iris/bus';
import { describeBus } from '@iris/bus/contract';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { natsForTests, type Restartable, restartableNats } from './servers.js';

describeBus('memory', async () => {
  const hub = memoryHub({ poison: true });
  return { connect: async () => hub.connect(), end: async () => {} };
});

describeBus('NATS', async () => {
  const { url, end } = await natsForTests();
  return { connect: () => natsBus({ servers: [url] }), end };
});

describe('NATS goes away and comes back', () => {
  let nats: Restartable;
  let a: Bus;
  let b: Bus;
  const bytes = (...values: number[]) => new Uint8Array(values);
  const becomes = (bus: Bus, wanted: boolean) =>
    new Promise<void>((resolve) => {
      const stop = bus.onConnected((connected) => {
        if (connected !== wanted) return;
        stop();
        resolve();
      });
    });
  const bothBecome = (wanted: boolean) => Promise.all([becomes(a, wanted), becomes(b, wanted)]);

  beforeAll(async () => {
    nats = await restartableNats();
    [a, b] = await Promise.all([natsBus({ servers: [nats.url] }), natsBus({ servers: [nats.url] })]);
  });
  afterAll(async () => {
    await Promise.all([a?.close(), b?.close()]);
    await nats?.end();
  });

  test('killed and restarted: subscriptions and servers are there again, and what was published meanwhile is dropped', async () => {
    const heard: number[] = [];
    let arrived = () => {};
    b.subscribe('t.killed', (data) => {
      heard.push(data[0]!);
      arrived();
    });
    b.serve('t.served', () => bytes(7));
    await b.flush();
    const down = bothBecome(false);
    await nats.kill();
    await down;
    expect([a.connected, b.connected]).toEqual([false, false]);
    a.publish('t.killed', bytes(1));
    b.subscribe('t.later', (data) => {
      heard.push(data[0]!);
      arrived();
    });
    await expect(a.request('t.served', bytes(), { timeout_ms: 50 })).rejects.toBeInstanceOf(BusTimeout);
    await expect(a.flush()).rejects.toBeInstanceOf(BusTimeout);
    const up = bothBecome(true);
    await nats.start();
    await up;
    await b.flush();
    expect([...(await a.request('t.served', bytes(), { timeout_ms: 5_000 }))]).toEqual([7]);
    const second = new Promise<void>((resolve) => {
      arrived = () => heard.length === 2 && resolve();
    });
    a.publish('t.killed', bytes(2));
    a.publish('t.later', bytes(3));
    await second;
    expect(heard).toEqual([2, 3]);
    await expect(a.request('t.nobody', bytes(), { timeout_ms: 60_000 })).rejects.toBeInstanceOf(NoResponders);
  }, 30_000);

  test('frozen: requests time out, it is noticed though the socket is open, and service resumes when it thaws', async () => {
    b.serve('t.frozen', () => bytes(8));
    await b.flush();
    const down = bothBecome(false);
    nats.freeze();
    await expect(a.request('t.frozen', bytes(), { timeout_ms: 100 })).rejects.toBeInstanceOf(BusTimeout);
    await down;
    const up = bothBecome(true);
    nats.thaw();
    await up;
    await b.flush();
    expect([...(await a.request('t.frozen', bytes(), { timeout_ms: 5_000 }))]).toEqual([8]);
  }, 30_000);

  test('a handler that throws ends nothing', async () => {
    const survived = new Promise<void>((resolve) => {
      b.subscribe('t.throws', (data) => {
        if (data[0] === 1) throw new Error('a fault of the handler');
        resolve();
      });
    });
    await b.flush();
    a.publish('t.throws', bytes(1));
    a.publish('t.throws', bytes(2));
    await survived;
  });
});
