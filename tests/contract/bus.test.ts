import { Worker } from 'node:worker_threads';
import { type Bus, BusTimeout, memoryHub, NoResponders, natsBus } from '@iris/bus';
import { describeBus } from '@iris/bus/contract';
import { recordingMeter } from '@iris/runtime/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { natsForTests, natsNodes, type Restartable, restartableNats } from './servers.js';

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

describe('three nodes of NATS, restarted one after the other under load', () => {
  test('C63: a server is asked and answers all the time, no pause is longer than 10 s, and nothing comes twice', async () => {
    const nodes = await natsNodes(3);
    const connect = () => natsBus({ servers: nodes.map(({ url }) => url) });
    const [asking, answering] = await Promise.all([connect(), connect()]);
    const asked = new Map<number, number>();
    let answers = 0;
    let [longest, last] = [0, performance.now()];
    let ended = false;
    try {
      answering.serve('t.rolling', (data) => {
        const number = new DataView(data.buffer, data.byteOffset).getUint32(0);
        asked.set(number, (asked.get(number) ?? 0) + 1);
        return data.slice();
      });
      await answering.flush();
      const load = (async () => {
        for (let n = 0; !ended; n++) {
          const data = new Uint8Array(4);
          new DataView(data.buffer).setUint32(0, n);
          try {
            await asking.request('t.rolling', data, { timeout_ms: 500 });
          } catch {
            // Asked again with the next number, as edges do.
            await new Promise((resolve) => setImmediate(resolve));
            continue;
          }
          answers++;
          longest = Math.max(longest, performance.now() - last);
          last = performance.now();
        }
      })();
      const more = async (count: number) => {
        const wanted = answers + count;
        while (answers < wanted) await new Promise((resolve) => setImmediate(resolve));
      };
      await more(50);
      for (const node of nodes) {
        await node.kill();
        await more(50);
        await node.start();
        await more(50);
      }
      ended = true;
      await load;
      expect(longest).toBeLessThan(10_000);
      expect([...asked.values()].filter((times) => times > 1)).toEqual([]);
      expect(asked.size).toBeGreaterThanOrEqual(answers);
    } finally {
      ended = true;
      await Promise.all([asking.close(), answering.close()]);
      await Promise.all(nodes.map((node) => node.end()));
    }
  }, 60_000);
});

/** Another thread that publishes so many megabytes, and says when the server has taken them all. */
const floods = `
const { workerData } = require('node:worker_threads');
const { flag, port, count } = workerData;
const socket = require('node:net').connect(port, '127.0.0.1');
const body = Buffer.alloc(1_000_000, 7);
socket.on('data', (data) => {
  if (!String(data).includes('PONG')) return;
  Atomics.store(flag, 0, 1);
  Atomics.notify(flag, 0);
  socket.end();
});
socket.write('CONNECT {"verbose":false}\\r\\n');
for (let n = 0; n < count; n++) {
  socket.write('PUB t.flood 1000000\\r\\n');
  socket.write(body);
  socket.write('\\r\\n');
}
socket.write('PING\\r\\n');
`;

test('C47: who does not take what the server has for it is cut off by it: that is counted, what was lost is lost, and what comes later comes', async () => {
  const nats = await restartableNats();
  const meter = recordingMeter();
  const cutOff = () => meter.total('iris_bus_slow_consumer_total', { why: 'cut_off' });
  const [slow, other] = await Promise.all([natsBus({ servers: [nats.url], meter }), natsBus({ servers: [nats.url], meter })]);
  try {
    let heard = 0;
    let later = () => {};
    slow.subscribe('t.flood', () => void heard++);
    slow.subscribe('t.later', () => later());
    await slow.flush();
    const back = new Promise<void>((resolve) => {
      slow.onConnected((connected) => connected && resolve());
    });
    const flag = new Int32Array(new SharedArrayBuffer(4));
    // The server keeps 64 MiB for one connection.
    const worker = new Worker(floods, { eval: true, workerData: { flag, port: Number(new URL(nats.url).port), count: 120 } });
    const ended = new Promise<void>((resolve) => void worker.once('exit', () => resolve()));
    // Nothing is read meanwhile: that is the case itself.
    expect(Atomics.wait(flag, 0, 0, 50_000)).not.toBe('timed-out');
    await back;
    await ended;
    expect(heard).toBeLessThan(120);
    expect(cutOff()).toBe(1);
    const comes = new Promise<void>((resolve) => {
      later = resolve;
    });
    await slow.flush();
    other.publish('t.later', new Uint8Array([1]));
    await comes;
    // A server that was restarted is another matter.
    const again = new Promise<void>((resolve) => {
      slow.onConnected((connected) => connected && resolve());
    });
    await nats.kill();
    await nats.start();
    await again;
    expect(cutOff()).toBe(1);
  } finally {
    await Promise.all([slow.close(), other.close()]);
    await nats.end();
  }
});
