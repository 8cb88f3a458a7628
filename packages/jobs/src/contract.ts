import type { TenantId } from '@iris/protocol';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { attempts, type Jobs, JobsUnavailable } from './jobs.js';

/** Handles on one queue server, for {@link describeJobs}. The first retry comes after {@link contractRetry_ms}. */
export interface JobsSetting {
  /** Handles of the same `space` share their queues. */
  connect(space: string): Promise<Jobs>;
  now(): number;
  /** Resolves when `ms` have passed, or as soon as `done` says so. */
  pass(ms: number, done?: () => boolean): Promise<void>;
  end(): Promise<void>;
}
export const contractRetry_ms = 20;

const tenant = (name: string) => name as TenantId;

/** What every job queue does, whichever keeps it. */
export function describeJobs(name: string, make: () => Promise<JobsSetting>): void {
  describe(`jobs: ${name}`, () => {
    let setting: JobsSetting;
    let jobs: Jobs;
    let other: Jobs;
    let count = 0;

    beforeAll(async () => {
      setting = await make();
    });
    afterAll(() => setting?.end());
    beforeEach(async () => {
      const space = `${process.pid}-${Date.now().toString(36)}-${++count}`;
      [jobs, other] = await Promise.all([setting.connect(space), setting.connect(space)]);
    });
    afterEach(() => Promise.all([jobs?.close(), other?.close()]));

    /** Until it is so; a failure says what was found instead. */
    const until = async (found: () => unknown, wanted: unknown) => {
      const so = () => JSON.stringify(found()) === JSON.stringify(wanted);
      await setting.pass(20_000, so);
      expect(found()).toEqual(wanted);
    };
    const gate = () => {
      let open = () => {};
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      return { opened, open };
    };

    test('a job runs once, with its data, whoever asked for it', async () => {
      const seen: unknown[] = [];
      await other.enqueue('push.check', { tenant_id: tenant('t"1'), cursor: 7 });
      await jobs.work({ 'push.check': async (data) => void seen.push(data) }, { concurrency: 2 });
      await jobs.enqueue('push.check', { tenant_id: tenant('t2'), cursor: Number.MAX_SAFE_INTEGER });
      await until(
        () => seen,
        [
          { tenant_id: 't"1', cursor: 7 },
          { tenant_id: 't2', cursor: Number.MAX_SAFE_INTEGER },
        ],
      );
      await setting.pass(100);
      expect(seen).toHaveLength(2);
    });

    test('a delayed job does not run before its time, and others do not wait for it', async () => {
      const seen: [number, number][] = [];
      const began = setting.now();
      await jobs.work({ 'push.check': async ({ cursor }) => void seen.push([cursor, setting.now() - began]) }, { concurrency: 1 });
      await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor: 1 }, { delay_ms: 300 });
      await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor: 2 });
      await until(() => seen.map(([cursor]) => cursor), [2, 1]);
      expect(seen[0]![1]).toBeLessThan(300);
      // Servers count in milliseconds of their own.
      expect(seen[1]![1]).toBeGreaterThanOrEqual(295);
    });

    test('the same id while the first waits changes nothing; while it runs, or after, it is a new job', async () => {
      const seen: number[] = [];
      const { opened, open } = gate();
      for (const cursor of [1, 2, 3]) await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor }, { id: 'a', delay_ms: 50 });
      await other.enqueue('push.check', { tenant_id: tenant('t'), cursor: 4 }, { id: 'b', delay_ms: 50 });
      const first = {
        'push.check': async ({ cursor }: { cursor: number }) => {
          seen.push(cursor);
          if (cursor === 1) await opened;
        },
      };
      await jobs.work(first, { concurrency: 4 });
      await until(() => [...seen].sort(), [1, 4]);
      await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor: 5 }, { id: 'a' });
      await until(() => [...seen].sort(), [1, 4, 5]);
      open();
      await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor: 6 }, { id: 'b' });
      await until(() => [...seen].sort(), [1, 4, 5, 6]);
    });

    test('ids of different kinds are apart', async () => {
      const seen: string[] = [];
      await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor: 1 }, { id: 'a' });
      await jobs.enqueue('upkeep.repair', {}, { id: 'a' });
      await jobs.work(
        { 'push.check': async () => void seen.push('push'), 'upkeep.repair': async () => void seen.push('repair') },
        { concurrency: 1 },
      );
      await until(() => [...seen].sort(), ['push', 'repair']);
    });

    test('what fails is tried again with growing pauses, so often and no more', async () => {
      const at: number[] = [];
      let good = 0;
      await jobs.work(
        {
          'upkeep.retention': async () => {
            at.push(setting.now());
            throw new Error('no');
          },
          'upkeep.repair': async () => {
            if (++good < 3) throw new Error('not yet');
          },
        },
        { concurrency: 1 },
      );
      await jobs.enqueue('upkeep.retention', {});
      await jobs.enqueue('upkeep.repair', {});
      await until(() => at.length, attempts);
      await setting.pass(contractRetry_ms * 2 ** attempts);
      expect(at).toHaveLength(attempts);
      expect(good).toBe(3);
      const pauses = at.slice(1).map((time, i) => time - at[i]!);
      pauses.forEach((pause, i) => void expect(pause).toBeGreaterThanOrEqual(contractRetry_ms * 2 ** i - 5));
    });

    test('LIM16: tenants take turns by their weights, however much each has asked for; who comes anew is next', async () => {
      const began: string[] = [];
      const { opened, open } = gate();
      const ask = (tenant_id: string, weight: number, count: number) =>
        Promise.all(
          Array.from({ length: count }, (_, cursor) =>
            jobs.enqueue('push.check', { tenant_id: tenant(tenant_id), cursor }, { share: { tenant_id: tenant(tenant_id), weight } }),
          ),
        );
      await ask('loud', 10, 100);
      await ask('heavy', 30, 60);
      await jobs.work(
        {
          async 'push.check'({ tenant_id }) {
            began.push(tenant_id);
            if (began.length === 21) await opened;
          },
        },
        { concurrency: 1 },
      );
      await until(() => began.length, 21).finally(() => began.length < 21 && open());
      const count = (who: string, list: readonly string[]) => list.filter((one) => one === who).length;
      expect(count('heavy', began.slice(0, 20))).toBeGreaterThanOrEqual(14);
      expect(count('loud', began.slice(0, 20))).toBeGreaterThanOrEqual(4);
      await ask('late', 10, 1);
      await other.enqueue('push.check', { tenant_id: tenant('nobody'), cursor: 1 });
      open();
      await until(() => began.length, 162);
      expect(began.slice(21, 22)).toEqual(['nobody']);
      expect(began.indexOf('late')).toBeLessThanOrEqual(27);
    });

    test('LIM16: long jobs of one tenant do not hold all places: another’s begins at once, and none of the long ones is lost', async () => {
      const { opened, open } = gate();
      const began: string[] = [];
      let running = 0;
      let most = 0;
      await jobs.work(
        {
          async 'push.check'({ tenant_id, cursor }) {
            began.push(`${tenant_id} ${cursor}`);
            if (tenant_id !== 'long') return;
            most = Math.max(most, ++running);
            await opened;
            running--;
          },
        },
        { concurrency: 3, most: 2 },
      );
      const ask = (name: string, cursor: number) =>
        other.enqueue('push.check', { tenant_id: tenant(name), cursor }, { share: { tenant_id: tenant(name), weight: 10 } });
      for (let cursor = 0; cursor < 12; cursor++) await ask('long', cursor);
      await until(() => running, 2);
      for (let cursor = 0; cursor < 4; cursor++) await ask('short', cursor);
      await until(() => began.filter((one) => one.startsWith('short')).length, 4).finally(() => began.length < 6 && open());
      expect(began.filter((one) => one.startsWith('long'))).toEqual(['long 0', 'long 1']);
      open();
      await until(() => began.length, 16);
      expect([most, new Set(began).size]).toEqual([2, 16]);
    });

    test('workers share the jobs; each runs once', async () => {
      const seen = new Map<string, number[]>();
      for (const [who, each] of [
        ['jobs', jobs],
        ['other', other],
      ] as const) {
        seen.set(who, []);
        await each.work(
          {
            'push.check': async ({ cursor }) => {
              seen.get(who)!.push(cursor);
              await setting.pass(1);
            },
          },
          { concurrency: 3 },
        );
      }
      const all = Array.from({ length: 60 }, (_, i) => i);
      await Promise.all(all.map((cursor) => jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor })));
      await until(() => [...seen.values()].flat().sort((a, b) => a - b), all);
    });

    test('no more of a kind run at once than was said, and a kind that is stuck holds up no other', async () => {
      const { opened, open } = gate();
      let running = 0;
      let most = 0;
      const done: string[] = [];
      await jobs.work(
        {
          'push.check': async () => {
            most = Math.max(most, ++running);
            await opened;
            running--;
            done.push('push');
          },
          'upkeep.repair': async () => void done.push('repair'),
        },
        { concurrency: 2 },
      );
      for (let cursor = 0; cursor < 5; cursor++) await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor });
      await until(() => running, 2);
      await jobs.enqueue('upkeep.repair', {});
      await until(() => done, ['repair']);
      open();
      await until(() => done.length, 6);
      expect(most).toBe(2);
    });

    test('a rhythm is kept once, however many ask and work', async () => {
      const at: number[] = [];
      for (const each of [jobs, other]) {
        await each.work({ 'upkeep.retention': async () => void at.push(setting.now()) }, { concurrency: 1 });
        await each.repeat('upkeep.retention', {}, 200);
        await each.repeat('upkeep.retention', {}, 200);
      }
      await setting.pass(20_000, () => at.length >= 5);
      expect(at.length).toBeGreaterThanOrEqual(5);
      // Doubled, five would be there after two pauses.
      expect(at[4]! - at[0]!).toBeGreaterThanOrEqual(600);
    });

    test('end: what runs is finished, and nothing new is taken', async () => {
      const { opened, open } = gate();
      const done: number[] = [];
      const working = await jobs.work(
        {
          'push.check': async ({ cursor }) => {
            await opened;
            done.push(cursor);
          },
        },
        { concurrency: 1 },
      );
      let started = false;
      await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor: 1 });
      await jobs.enqueue('push.check', { tenant_id: tenant('t'), cursor: 2 });
      await setting.pass(200);
      let ended = false;
      const ending = working.end().then(() => {
        ended = true;
      });
      await setting.pass(100);
      expect(ended).toBe(false);
      open();
      await ending;
      expect(done).toEqual([1]);
      await setting.pass(100);
      expect(done).toEqual([1]);
      await other.work(
        {
          'push.check': async ({ cursor }) => {
            started = true;
            done.push(cursor);
          },
        },
        { concurrency: 1 },
      );
      await until(() => done, [1, 2]);
      expect(started).toBe(true);
    });

    test('after close nothing is taken', async () => {
      await jobs.close();
      await jobs.close();
      await expect(jobs.enqueue('upkeep.repair', {})).rejects.toBeInstanceOf(JobsUnavailable);
      await expect(jobs.repeat('upkeep.repair', {}, 1_000)).rejects.toBeInstanceOf(JobsUnavailable);
      await expect(jobs.work({}, { concurrency: 1 })).rejects.toBeInstanceOf(JobsUnavailable);
      await other.enqueue('upkeep.repair', {});
    });
  });
}
