import { bullmqJobs, type Jobs, JobsUnavailable, memoryJobs } from '@iris/jobs';
import { contractRetry_ms, describeJobs } from '@iris/jobs/contract';
import type { TenantId } from '@iris/protocol';
import { manualClock } from '@iris/runtime/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { type Restartable, redisForTests, restartableRedis } from './servers.js';

describeJobs('memory', async () => {
  const clock = manualClock();
  const spaces = new Map<string, ReturnType<typeof memoryJobs>>();
  return {
    async connect(space) {
      const jobs = spaces.get(space) ?? memoryJobs({ clock, firstRetry_ms: contractRetry_ms });
      spaces.set(space, jobs);
      return jobs.connect();
    },
    now: () => clock.now(),
    async pass(ms, done = () => false) {
      if (ms === 1) return;
      for (const until = clock.now() + ms; clock.now() < until && !done(); ) await clock.advance(5);
    },
    async end() {
      for (const jobs of spaces.values()) await jobs.close();
      expect(clock.timers).toBe(0);
    },
  };
});

/** Real time, looked at every few milliseconds. */
const pass = async (ms: number, done = () => false) => {
  const until = performance.now() + ms;
  while (performance.now() < until && !done()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describeJobs('BullMQ', async () => {
  const { url, end } = await redisForTests();
  return {
    connect: async (space) => bullmqJobs({ url, prefix: `{bull-${space}}`, firstRetry_ms: contractRetry_ms }),
    now: () => Date.now(),
    pass,
    end,
  };
});

describe('BullMQ while Redis goes away and comes back', () => {
  let redis: Restartable;
  let jobs: Jobs;
  afterEach(async () => {
    await jobs?.close();
    await redis?.end();
  });
  const check = (cursor: number) => ({ tenant_id: 't' as TenantId, cursor });

  test('workers resume by themselves, what waited is done, and a rhythm survives the loss of all data', async () => {
    redis = await restartableRedis({ keep: false });
    jobs = bullmqJobs({ url: redis.url, firstRetry_ms: contractRetry_ms });
    const seen: number[] = [];
    let beats = 0;
    await jobs.work(
      { 'push.check': async ({ cursor }) => void seen.push(cursor), 'upkeep.retention': async () => void beats++ },
      { concurrency: 2 },
    );
    await jobs.repeat('upkeep.retention', {}, 200);
    await jobs.enqueue('push.check', check(1));
    await pass(10_000, () => seen.length === 1 && beats > 0);
    expect(seen).toEqual([1]);
    await redis.kill();
    await expect(jobs.enqueue('push.check', check(2))).rejects.toBeInstanceOf(JobsUnavailable);
    // Asked while it is still away, it waits a moment for it.
    const waiting = jobs.enqueue('push.check', check(3));
    await redis.start();
    await waiting;
    const beatsBefore = beats;
    await pass(20_000, () => seen.includes(3) && beats > beatsBefore + 1);
    expect(seen).toContain(3);
    expect(beats).toBeGreaterThan(beatsBefore + 1);
  }, 60_000);

  test('restarted with its data, a delayed job is still done', async () => {
    redis = await restartableRedis({ keep: true });
    jobs = bullmqJobs({ url: redis.url });
    const seen: number[] = [];
    await jobs.work({ 'push.check': async ({ cursor }) => void seen.push(cursor) }, { concurrency: 1 });
    await jobs.enqueue('push.check', check(1), { delay_ms: 1_500 });
    await redis.stop();
    await redis.start();
    await pass(20_000, () => seen.length > 0);
    expect(seen).toEqual([1]);
  }, 60_000);

  test('frozen: asking ends within seconds, and work goes on when it thaws', async () => {
    redis = await restartableRedis({ keep: false });
    jobs = bullmqJobs({ url: redis.url });
    const seen: number[] = [];
    await jobs.work({ 'push.check': async ({ cursor }) => void seen.push(cursor) }, { concurrency: 1 });
    await jobs.enqueue('push.check', check(1));
    await pass(10_000, () => seen.length === 1);
    redis.freeze();
    const began = performance.now();
    await expect(jobs.enqueue('push.check', check(2))).rejects.toBeInstanceOf(JobsUnavailable);
    expect(performance.now() - began).toBeLessThan(4_000);
    redis.thaw();
    await jobs.enqueue('push.check', check(3));
    await pass(20_000, () => seen.includes(3));
    expect(seen).toContain(3);
  }, 60_000);

  test('closing while it is away does not hang', async () => {
    redis = await restartableRedis({ keep: false });
    jobs = bullmqJobs({ url: redis.url });
    await jobs.work({ 'push.check': async () => {} }, { concurrency: 1 });
    await jobs.enqueue('push.check', check(1));
    await redis.kill();
    const began = performance.now();
    await jobs.close();
    expect(performance.now() - began).toBeLessThan(6_000);
  }, 60_000);
});
