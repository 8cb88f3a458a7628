import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type AppendFrame, type Outbox, OutboxUnavailable, redisOutbox } from '@iris/outbox';
import type { ConnectionId, DeviceId, EdgeId, TenantId } from '@iris/protocol';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { type Restartable, restartableRedis } from './servers.js';

const tenant = 'tenant-1' as TenantId;
const frame = (text: string, key?: string): AppendFrame => ({
  body: new TextEncoder().encode(text),
  type: 'message',
  push: false,
  ...(key === undefined ? {} : { key }),
});
const texts = async (outbox: Outbox, after: number) =>
  (await outbox.read(tenant, after, { limit: 1_000 })).entries.map((entry) => new TextDecoder().decode(entry.body));
const append = async (outbox: Outbox, ...frames: AppendFrame[]) =>
  (await outbox.append([{ tenant_id: tenant, frames, max_frames: 10_000 }]))[0]!;
const reconnected = (outbox: Outbox) =>
  new Promise<void>((resolve) => {
    const stop = outbox.onReconnected(() => {
      stop();
      resolve();
    });
  });
const device = { device_id: 'd' as DeviceId, edge_id: 'e' as EdgeId, connection_id: 'c' as ConnectionId };

describe('Redis goes away and comes back', () => {
  let redis: Restartable & { readonly data: string };
  let outbox: Outbox;
  const begin = async (keep: boolean) => {
    redis = await restartableRedis({ keep });
    outbox = await redisOutbox({ url: redis.url });
  };
  const admin = async <R>(use: (client: Redis) => Promise<R>): Promise<R> => {
    const client = new Redis(redis.url);
    try {
      return await use(client);
    } finally {
      client.disconnect();
    }
  };
  const restart = async (between: () => void = () => {}) => {
    const back = reconnected(outbox);
    await redis.kill();
    between();
    await redis.start();
    await back;
  };
  beforeEach(() => {
    redis = undefined as never;
    outbox = undefined as never;
  });
  afterEach(async () => {
    await outbox?.close();
    await redis?.end();
  });

  test('restarted empty: refused until seeded above everything given, and the routing is told anew', async () => {
    await begin(false);
    await outbox.seed(tenant, 0, 100);
    await outbox.register(tenant, { ...device, watermark: 0, new: true });
    expect(await append(outbox, frame('a', 'ka'), frame('b'))).toMatchObject({ cursors: [1, 2], edges: ['e'] });
    await restart();
    expect(outbox.connected).toBe(true);
    expect(await append(outbox, frame('a', 'ka'))).toEqual({ refused: 'unseeded' });
    expect(await outbox.register(tenant, { ...device, watermark: 1, new: false })).toEqual({ refused: 'unseeded' });
    expect(await outbox.read(tenant, 1, { limit: 10 })).toMatchObject({ entries: [], unseeded: true });
    await outbox.refresh(device.edge_id, [{ tenant_id: tenant, ...device }]);
    await outbox.seed(tenant, 100, 200, 100);
    expect(await append(outbox, frame('a', 'ka'))).toEqual({ cursors: [101], fresh: [true], previous: 100, edges: ['e'] });
    expect(await outbox.register(tenant, { ...device, watermark: 1, new: false })).toMatchObject({ head: 101, watermark: 1 });
  }, 30_000);

  test('restarted with an older state: not trusted, though everything looks right', async () => {
    await begin(true);
    await outbox.seed(tenant, 0, 100);
    await append(outbox, frame('a', 'ka'), frame('b', 'kb'));
    await outbox.put(tenant, { 'turn:1': 'running' });
    await outbox.confirm([{ tenant_id: tenant, device_id: device.device_id, cursor: 2 }]);
    const old = join(redis.data, '..', 'old');
    // Rewritten, the append-only file is complete on disk.
    await admin(async (client) => {
      await client.bgrewriteaof();
      while (/aof_rewrite_(in_progress|scheduled):1/.test(await client.info('persistence')));
    });
    cpSync(redis.data, old, { recursive: true });
    expect(await append(outbox, frame('c', 'kc'), frame('d', 'kd'))).toMatchObject({ cursors: [3, 4] });
    await restart(() => {
      rmSync(redis.data, { recursive: true });
      cpSync(old, redis.data, { recursive: true });
    });

    expect(await outbox.heads([tenant])).toEqual([2]);
    expect(await append(outbox, frame('e'))).toEqual({ refused: 'unseeded' });
    expect(await outbox.read(tenant, 0, { limit: 10 })).toMatchObject({ head: 2, unseeded: true });
    await outbox.extend(tenant, 1_000);
    expect(await append(outbox, frame('e'))).toEqual({ refused: 'unseeded' });
    await outbox.seed(tenant, 100, 200, 100);
    expect(await append(outbox, frame('c', 'kc'), frame('a', 'ka'))).toMatchObject({ cursors: [101, 102], fresh: [true, true] });
    expect(await texts(outbox, 0)).toEqual(['c', 'a']);
    expect(await outbox.values(tenant)).toEqual(new Map());
    expect(await outbox.watermark(tenant, device.device_id)).toBe(2);
  }, 30_000);

  test('SYN1 OUT2: killed and back with all that was given: it is replayed still, and keys are known', async () => {
    await begin(true);
    await outbox.seed(tenant, 0, 100);
    await append(outbox, frame('a', 'ka'), frame('b', 'kb'), frame('c', 'kc'));
    await outbox.put(tenant, { 'turn:1': 'running' });
    await restart();
    expect(await append(outbox, frame('d'))).toEqual({ refused: 'unseeded' });
    await outbox.seed(tenant, 100, 200, 3);
    expect(await append(outbox, frame('c', 'kc'), frame('d', 'kd'))).toMatchObject({
      cursors: [3, 101],
      fresh: [false, true],
      previous: 3,
    });
    expect(await outbox.read(tenant, 1, { limit: 10 })).toMatchObject({ floor: 0, head: 101, last_known: 3 });
    expect(await texts(outbox, 1)).toEqual(['b', 'c', 'd']);
    expect(await outbox.values(tenant)).toEqual(new Map());
    // The jump does not count as frames that are kept.
    expect(await outbox.trim(tenant, { max_frames: 3, before_ms: 0 })).toBe(1);
    const [more] = await outbox.append([{ tenant_id: tenant, frames: [frame('e', 'ke')], max_frames: 1 }]);
    expect(more).toMatchObject({ cursors: [102] });
    const page = await outbox.read(tenant, 3, { limit: 10 });
    expect(page).toMatchObject({ floor: 101 });
    expect('last_known' in page).toBe(false);
  }, 30_000);

  test('SYN1 OUT2: killed twice, and back each time with all that was given: neither jump counts as frames that are kept', async () => {
    await begin(true);
    await outbox.seed(tenant, 0, 100);
    await append(outbox, frame('a', 'ka'), frame('b', 'kb'));
    await restart();
    await outbox.seed(tenant, 1_000, 2_000, 2);
    await append(outbox, frame('c', 'kc'));
    await restart();
    await outbox.seed(tenant, 2_000, 3_000, 1_001);
    const [last] = await outbox.append([{ tenant_id: tenant, frames: [frame('d', 'kd')], max_frames: 10 }]);
    expect(last).toMatchObject({ cursors: [2_001], previous: 1_001 });
    expect(await outbox.trim(tenant, { max_frames: 10, before_ms: 0 })).toBe(0);
    expect(await texts(outbox, 0)).toEqual(['a', 'b', 'c', 'd']);
  }, 30_000);

  test('a seed below what the server still has does not step back', async () => {
    await begin(true);
    await outbox.seed(tenant, 0, 1_000);
    await append(outbox, frame('a'), frame('b'), frame('c'));
    const back = reconnected(outbox);
    await redis.stop();
    await redis.start();
    await back;
    expect(await append(outbox, frame('d'))).toEqual({ refused: 'unseeded' });
    await outbox.seed(tenant, 1, 2, 1);
    expect(await append(outbox, frame('d'))).toEqual({ refused: 'exhausted' });
    await outbox.extend(tenant, 1_000);
    expect(await append(outbox, frame('d'))).toMatchObject({ cursors: [4] });
  }, 30_000);

  test('frozen: every call ends within seconds and says so, and service resumes when it thaws', async () => {
    await begin(false);
    await outbox.seed(tenant, 0, 100);
    redis.freeze();
    const began = performance.now();
    const calls = [
      append(outbox, frame('a', 'ka')),
      outbox.heads([tenant]),
      outbox.read(tenant, 0, { limit: 1 }),
      outbox.confirm([{ tenant_id: tenant, device_id: device.device_id, cursor: 2 }]),
      outbox.values(tenant),
    ];
    for (const call of calls) await expect(call).rejects.toBeInstanceOf(OutboxUnavailable);
    expect(outbox.connected).toBe(false);
    // Without a connection the answer is the same, and as soon.
    await expect(outbox.heads([tenant])).rejects.toBeInstanceOf(OutboxUnavailable);
    expect(performance.now() - began).toBeLessThan(6_000);
    const back = reconnected(outbox);
    redis.thaw();
    await back;
    // The same run of the server: the sequence is trusted. What was asked before has happened or not; the key makes it once.
    expect(await append(outbox, frame('a', 'ka'), frame('b'))).toMatchObject({ cursors: [1, 2] });
    expect(await texts(outbox, 0)).toEqual(['a', 'b']);
  }, 30_000);

  test('a call made while the server is away waits for it, for a while', async () => {
    await begin(true);
    await outbox.seed(tenant, 0, 100);
    await redis.kill();
    const waiting = append(outbox, frame('a'));
    await redis.start();
    expect(await waiting).toEqual({ refused: 'unseeded' });
  }, 30_000);

  test('full, or without its scripts: said as unavailable, or mended', async () => {
    await begin(false);
    await outbox.seed(tenant, 0, 100);
    await admin((client) => client.script('FLUSH'));
    expect(await append(outbox, frame('a'))).toMatchObject({ cursors: [1] });
    await admin((client) => client.config('SET', 'maxmemory', '1'));
    await expect(append(outbox, frame('b', 'kb'))).rejects.toBeInstanceOf(OutboxUnavailable);
    expect(await outbox.heads([tenant])).toEqual([1]);
    await admin((client) => client.config('SET', 'maxmemory', '0'));
    expect(await append(outbox, frame('b', 'kb'))).toMatchObject({ cursors: [2], fresh: [true] });
    // A primary that was demoted.
    await admin((client) => client.replicaof('127.0.0.1', '1'));
    await expect(append(outbox, frame('c', 'kc'))).rejects.toBeInstanceOf(OutboxUnavailable);
    await admin((client) => client.replicaof('NO', 'ONE'));
    expect(await append(outbox, frame('c', 'kc'))).toMatchObject({ cursors: [3] });
  }, 30_000);

  test('killed again and again under load: a cursor never names two frames, and nothing steps back', async () => {
    await begin(true);
    const other = await redisOutbox({ url: redis.url });
    /** What Postgres does: blocks of cursors, each given out once. */
    let reserved = 0;
    const reserve = () => {
      const from = reserved;
      reserved += 50;
      return { from, to: reserved };
    };
    const given = new Map<number, string>();
    const violations: string[] = [];
    let stopped = false;
    const client = async (on: Outbox, name: string) => {
      let highest = 0;
      let made = 0;
      for (let round = 0; !stopped; ) {
        const frames = [0, 1, 2].map((i) => frame(`${name}.${round}.${i}`, `${name}.${round}.${i}`));
        try {
          const result = await append(on, ...frames);
          if (result.refused === undefined) {
            result.cursors.forEach((cursor, i) => {
              const text = `${name}.${round}.${i}`;
              const before = given.get(cursor);
              if (before !== undefined && before !== text) violations.push(`${cursor} is ${before} and ${text}`);
              if (cursor <= highest) violations.push(`${text} at ${cursor} after ${highest}`);
              given.set(cursor, text);
              highest = cursor;
            });
            round++;
            made++;
          } else if (result.refused === 'unseeded') {
            const { from, to } = reserve();
            await on.seed(tenant, from, to, from);
          } else await on.extend(tenant, reserve().to);
        } catch (error) {
          if (!(error instanceof OutboxUnavailable)) throw error;
        }
      }
      return made;
    };
    const clients = Promise.all([client(outbox, 'a'), client(other, 'b')]);
    for (let i = 0; i < 3; i++) {
      const target = given.size + 300;
      while (given.size < target) await outbox.heads([tenant]);
      await restart(i === 1 ? () => rmSync(redis.data, { recursive: true }) : undefined);
    }
    const target = given.size + 300;
    while (given.size < target) await outbox.heads([tenant]);
    stopped = true;
    const [a, b] = await clients;
    await other.close();
    expect(violations).toEqual([]);
    expect(Math.min(a, b)).toBeGreaterThan(0);
  }, 60_000);
});
