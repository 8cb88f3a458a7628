import type { ConnectionId, DeviceId, EdgeId, TenantId } from '@iris/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Appended, AppendFrame, Outbox, OutboxEntry } from './outbox.js';
import { keyKept_ms } from './outbox.js';

/** Handles on one store, for {@link describeOutbox}. Leases are 1 s. */
export interface OutboxSetting {
  connect(): Promise<Outbox>;
  /** Milliseconds since 1970, as the store counts them. */
  now(): Promise<number>;
  /** Resolves when at least `ms` have passed for the store. */
  pass(ms: number): Promise<void>;
  /** As if the tenant's keys had been remembered `ms` earlier. */
  ageKeys(tenant_id: TenantId, ms: number): Promise<void>;
  end(): Promise<void>;
}
export const contractLease_ms = 1_000;

const utf8 = new TextEncoder();
const text = new TextDecoder();
const frame = (body: string, more: Partial<AppendFrame> = {}): AppendFrame => ({
  body: utf8.encode(body),
  type: 'message',
  push: false,
  ...more,
});
const bodies = (entries: readonly OutboxEntry[]) => entries.map((entry) => text.decode(entry.body));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** What every outbox does, whichever keeps it. */
export function describeOutbox(name: string, make: () => Promise<OutboxSetting>): void {
  describe(`outbox: ${name}`, () => {
    let setting: OutboxSetting;
    let outbox: Outbox;
    let other: Outbox;
    let tenant: TenantId;
    let count = 0;

    beforeAll(async () => {
      setting = await make();
      [outbox, other] = await Promise.all([setting.connect(), setting.connect()]);
    });
    afterAll(async () => {
      await Promise.all([outbox?.close(), other?.close()]);
      await setting?.end();
    });
    beforeEach(async () => {
      tenant = freshTenant();
      await outbox.seed(tenant, 0, 1_000_000);
    });

    const freshTenant = () => `t-${process.pid}-${Date.now().toString(36)}-${++count}` as TenantId;
    const device = (name: string, connection = `c-${name}`, edge = 'e1') => ({
      device_id: name as DeviceId,
      connection_id: connection as ConnectionId,
      edge_id: edge as EdgeId,
    });
    const append = async (frames: AppendFrame[], { on = outbox, max_frames = 100_000, to = tenant } = {}): Promise<Appended> => {
      const [result] = await on.append([{ tenant_id: to, frames, max_frames }]);
      if (result?.refused !== undefined) throw new Error(`refused: ${result.refused}`);
      return result!;
    };
    const refusal = async (frames: AppendFrame[], to = tenant) =>
      (await outbox.append([{ tenant_id: to, frames, max_frames: 100 }]))[0]!.refused;
    const readAll = (options: { after?: number; compact?: boolean } = {}) =>
      outbox.read(tenant, options.after ?? 0, { limit: 10_000, ...options });
    const register = async (one: ReturnType<typeof device>, more: { watermark?: number; new?: boolean } = {}) => {
      const result = await outbox.register(tenant, { ...one, watermark: 0, new: false, ...more });
      if (result.refused !== undefined) throw new Error(`refused: ${result.refused}`);
      return result;
    };

    describe('append', () => {
      test('cursors are dense from the seed on, in the order of the frames, for many tenants at once', async () => {
        const second = freshTenant();
        await outbox.seed(second, 500, 1_000);
        const results = await outbox.append([
          { tenant_id: tenant, frames: [frame('a'), frame('b')], max_frames: 100 },
          { tenant_id: second, frames: [frame('x')], max_frames: 100 },
          { tenant_id: tenant, frames: [frame('c')], max_frames: 100 },
        ]);
        expect(results).toEqual([
          { cursors: [1, 2], fresh: [true, true], previous: 0, edges: [] },
          { cursors: [501], fresh: [true], previous: 500, edges: [] },
          { cursors: [3], fresh: [true], previous: 2, edges: [] },
        ]);
        expect(await outbox.heads([tenant, freshTenant(), second])).toEqual([3, 0, 501]);
        expect(await outbox.append([])).toEqual([]);
        expect(await outbox.heads([])).toEqual([]);
      });

      test('every byte and every field comes back; the stored bytes are not the ones of the caller', async () => {
        const body = Uint8Array.from({ length: 256 }, (_, i) => i);
        const full = frame('', {
          body,
          type: 'message.stop',
          key: 'k',
          message_ids: ['m1', 'm2'],
          lane: 'l\nt',
          supersedes: 's',
          except_device_id: 'gerät\n"1"' as DeviceId,
          push: true,
        });
        await append([full, frame('')]);
        const kept = body.slice();
        body.fill(0);
        const { entries } = await readAll();
        expect(entries).toEqual([
          { cursor: 1, type: 'message.stop', message_id: 'm1', except_device_id: 'gerät\n"1"', push: true, body: kept },
          { cursor: 2, type: 'message', push: false, body: new Uint8Array() },
        ]);
        entries[0]!.body.fill(0);
        expect((await readAll()).entries[0]!.body).toEqual(kept);
      });

      test('a key seen before gives its first cursor, in the same batch, in a later one, and from another client', async () => {
        const first = await append([frame('a', { key: 'ka' }), frame('b', { key: 'kb' }), frame('a again', { key: 'ka' }), frame('c')]);
        expect(first).toMatchObject({ cursors: [1, 2, 1, 3], fresh: [true, true, false, true], previous: 0 });
        const second = await append([frame('d'), frame('b again', { key: 'kb' })], { on: other });
        expect(second).toMatchObject({ cursors: [4, 2], fresh: [true, false], previous: 3 });
        const third = await append([frame('a', { key: 'ka' })]);
        expect(third).toMatchObject({ cursors: [1], fresh: [false], previous: 4 });
        expect(bodies((await readAll()).entries)).toEqual(['a', 'b', 'c', 'd']);
      });

      test('keys are of one tenant, and names of object members are keys like others', async () => {
        const second = freshTenant();
        await outbox.seed(second, 0, 100);
        const frames = ['__proto__', 'constructor', 'toString', '\u{1F511}'].map((key) => frame(key, { key }));
        expect((await append(frames)).fresh).toEqual([true, true, true, true]);
        expect((await append(frames, { to: second })).fresh).toEqual([true, true, true, true]);
        expect((await append(frames)).cursors).toEqual([1, 2, 3, 4]);
      });

      test('keys are remembered for a day at least, and forgotten after two', async () => {
        await append([frame('a', { key: 'ka' })]);
        await setting.ageKeys(tenant, keyKept_ms - 60_000);
        await append([frame('b', { key: 'kb' })]);
        await setting.ageKeys(tenant, 120_000);
        expect(await append([frame('c', { key: 'kc' }), frame('a', { key: 'ka' }), frame('b', { key: 'kb' })])).toMatchObject({
          cursors: [3, 1, 2],
        });
        await setting.ageKeys(tenant, keyKept_ms);
        expect(await append([frame('a', { key: 'ka' }), frame('c', { key: 'kc' })])).toMatchObject({ cursors: [4, 3] });
        await setting.ageKeys(tenant, 2 * keyKept_ms);
        expect(await append([frame('c', { key: 'kc' })])).toMatchObject({ cursors: [5], fresh: [true] });
      });

      test('two clients at once: dense, unique, each batch in one piece, and a shared key once', async () => {
        const rounds = range(0, 39);
        const results = await Promise.all(
          rounds.flatMap((round) =>
            [outbox, other].map((on, client) =>
              append([...range(0, 4).map((i) => frame(`${client}.${round}.${i}`)), frame('shared', { key: `k${round}` })], { on }),
            ),
          ),
        );
        const given = results.flatMap((result) => result.cursors.filter((_, i) => result.fresh[i]));
        expect([...given].sort((a, b) => a - b)).toEqual(range(1, 40 * 11));
        for (const { cursors } of results) expect(cursors.slice(0, 5)).toEqual(range(cursors[0]!, cursors[0]! + 4));
        for (const round of rounds) expect(results[2 * round]!.cursors[5]).toBe(results[2 * round + 1]!.cursors[5]);
        expect((await readAll()).entries.map((entry) => entry.cursor)).toEqual(range(1, 440));
      });

      test('a batch of thousands is one step', async () => {
        const frames = range(1, 5_000).map((i) => frame(`${i}`, { key: `k${i}`, message_ids: [`m${i}`], supersedes: `s${i % 3}` }));
        const result = await append(frames);
        expect(result.cursors).toEqual(range(1, 5_000));
        expect((await append(frames)).fresh.some(Boolean)).toBe(false);
        expect(await outbox.forget(tenant, { message_ids: ['m1', 'm5000'] })).toBe(2);
      });

      test('cursors near 2^53 are exact', async () => {
        const high = freshTenant();
        const top = Number.MAX_SAFE_INTEGER - 1_000;
        await outbox.seed(high, top - 10, top);
        expect((await append([frame('a', { key: 'k', message_ids: ['m'], supersedes: 's' }), frame('b')], { to: high })).cursors).toEqual([
          top - 9,
          top - 8,
        ]);
        expect((await append([frame('a', { key: 'k' })], { to: high })).cursors).toEqual([top - 9]);
        const page = await outbox.read(high, top - 10, { limit: 10, compact: true });
        expect(page).toMatchObject({ next: top - 8, head: top - 8, floor: top - 10 });
        expect(page.entries.map((entry) => entry.cursor)).toEqual([top - 9, top - 8]);
        expect(await outbox.forget(high, { message_ids: ['m'] })).toBe(1);
        expect(await outbox.heads([high])).toEqual([top - 8]);
      });
    });

    describe('refusals', () => {
      test('a tenant without a sequence is unseeded, for append and register, and both leave nothing behind', async () => {
        const unknown = freshTenant();
        expect(await refusal([frame('a', { key: 'k' })], unknown)).toBe('unseeded');
        expect(await outbox.register(unknown, { ...device('d'), watermark: 0, new: true })).toEqual({ refused: 'unseeded' });
        expect(await outbox.devices(unknown)).toEqual([]);
        expect(await outbox.read(unknown, 7, { limit: 10 })).toEqual({ entries: [], next: 7, head: 0, floor: 0, unseeded: true });
        await outbox.seed(unknown, 10, 20);
        expect(await append([frame('a', { key: 'k' })], { to: unknown })).toMatchObject({ cursors: [11], fresh: [true] });
      });

      test('past the limit is exhausted, without any effect, until it is extended; the limit never falls', async () => {
        const small = freshTenant();
        await outbox.seed(small, 100, 102);
        expect(await refusal([frame('a', { key: 'ka' }), frame('b'), frame('c')], small)).toBe('exhausted');
        expect(await outbox.heads([small])).toEqual([100]);
        expect(await append([frame('a', { key: 'ka' }), frame('b')], { to: small })).toMatchObject({ cursors: [101, 102] });
        expect(await refusal([frame('c')], small)).toBe('exhausted');
        expect(await append([frame('a', { key: 'ka' })], { to: small })).toMatchObject({ cursors: [101], fresh: [false] });
        await outbox.extend(small, 103);
        await outbox.extend(small, 50);
        expect(await append([frame('c')], { to: small })).toMatchObject({ cursors: [103] });
        expect(await refusal([frame('d')], small)).toBe('exhausted');
      });

      test('one refused tenant does not hold up the others of the call', async () => {
        const unknown = freshTenant();
        const results = await outbox.append([
          { tenant_id: unknown, frames: [frame('x')], max_frames: 10 },
          { tenant_id: tenant, frames: [frame('a')], max_frames: 10 },
        ]);
        expect(results).toMatchObject([{ refused: 'unseeded' }, { cursors: [1] }]);
      });

      test('of several who seed only the first does, and what was appended since stays', async () => {
        const raced = freshTenant();
        await outbox.seed(raced, 100, 200);
        await append([frame('a', { key: 'k' })], { to: raced });
        await other.seed(raced, 200, 300, 90);
        expect(await append([frame('a', { key: 'k' }), frame('b')], { to: raced })).toMatchObject({ cursors: [101, 102], previous: 101 });
        expect(bodies((await outbox.read(raced, 100, { limit: 10 })).entries)).toEqual(['a', 'b']);
      });

      test('extend of an unseeded tenant does nothing', async () => {
        const unknown = freshTenant();
        await outbox.extend(unknown, 1_000);
        expect(await refusal([frame('a')], unknown)).toBe('unseeded');
      });
    });

    describe('read', () => {
      test('pages by limit, and says where to go on', async () => {
        await append(range(1, 10).map((i) => frame(`${i}`)));
        const first = await outbox.read(tenant, 0, { limit: 4 });
        expect(first).toMatchObject({ next: 4, head: 10, floor: 0 });
        expect(bodies(first.entries)).toEqual(['1', '2', '3', '4']);
        expect('last_known' in first || 'unseeded' in first).toBe(false);
        const last = await outbox.read(tenant, 6, { limit: 4 });
        expect(bodies(last.entries)).toEqual(['7', '8', '9', '10']);
        expect(last.next).toBe(10);
        expect(await outbox.read(tenant, 10, { limit: 4 })).toMatchObject({ entries: [], next: 10, head: 10 });
        expect(await outbox.read(tenant, 99, { limit: 4 })).toMatchObject({ entries: [], next: 99, head: 10 });
      });

      test('pages by bytes, with one frame at least', async () => {
        await append([frame('aaaa'), frame('bbbb'), frame('c'), frame('dddddddddddd'), frame('e')]);
        const page = async (after: number, max_bytes: number) => {
          const { entries, next } = await outbox.read(tenant, after, { limit: 100, max_bytes });
          return [bodies(entries).join(' '), next];
        };
        expect(await page(0, 8)).toEqual(['aaaa bbbb', 2]);
        expect(await page(0, 9)).toEqual(['aaaa bbbb c', 3]);
        expect(await page(3, 5)).toEqual(['dddddddddddd', 4]);
        expect(await page(4, 1)).toEqual(['e', 5]);
      });

      test('goes on in the same order over hundreds of frames, whatever the pages', async () => {
        await append(range(1, 333).map((i) => frame(`${i}`)));
        for (const limit of [1, 31, 32, 33, 64, 100, 400]) {
          const seen: string[] = [];
          for (let at = 0; ; ) {
            const page = await outbox.read(tenant, at, { limit });
            expect(page.entries.length).toBeLessThanOrEqual(limit);
            seen.push(...bodies(page.entries));
            at = page.next;
            if (at === page.head) break;
          }
          expect(seen).toEqual(range(1, 333).map(String));
        }
      });

      test('compacted, only the newest of what supersedes is given, and pages still end at the head', async () => {
        await append([
          frame('busy 1', { supersedes: 'busy' }),
          frame('a'),
          frame('idle 1', { supersedes: 'busy' }),
          frame('read 1', { supersedes: 'read' }),
          frame('b'),
          frame('busy 2', { supersedes: 'busy' }),
        ]);
        expect(bodies((await readAll()).entries)).toHaveLength(6);
        expect(bodies((await readAll({ compact: true })).entries)).toEqual(['a', 'read 1', 'b', 'busy 2']);
        const first = await outbox.read(tenant, 0, { limit: 1, compact: true });
        expect(first).toMatchObject({ entries: [], next: 1, head: 6 });
        await append([frame('read 2', { supersedes: 'read' })]);
        expect(bodies((await readAll({ compact: true })).entries)).toEqual(['a', 'b', 'busy 2', 'read 2']);
      });
    });

    describe('retention', () => {
      test('the floor follows the head at once: what is below is not read, and `after` below it is a gap', async () => {
        await append(
          range(1, 30).map((i) => frame(`${i}`)),
          { max_frames: 20 },
        );
        const page = await readAll();
        expect(page).toMatchObject({ floor: 10, head: 30, next: 30 });
        expect(bodies(page.entries)).toEqual(range(11, 30).map(String));
        await append([frame('31')], { max_frames: 20 });
        expect(await readAll({ after: 5 })).toMatchObject({ floor: 11 });
        // A larger quota brings nothing back.
        await append([frame('32')], { max_frames: 1_000 });
        expect(await readAll()).toMatchObject({ floor: 11 });
      });

      test('over many appends the floor and the indexes stay right, and what went cannot be forgotten again', async () => {
        for (let round = 0; round < 30; round++) {
          await append(
            range(1, 50).map((i) => frame(`${round * 50 + i}`, { message_ids: [`m${round * 50 + i}`, 'shared'], supersedes: `s${i % 2}` })),
            { max_frames: 100 },
          );
        }
        const page = await readAll();
        expect(page).toMatchObject({ floor: 1_400, head: 1_500 });
        expect(bodies(page.entries)).toEqual(range(1_401, 1_500).map(String));
        expect(bodies((await readAll({ compact: true })).entries)).toEqual(['1499', '1500']);
        expect(await outbox.forget(tenant, { message_ids: ['m5', 'm1400', 'm1401'] })).toBe(1);
        expect(await outbox.forget(tenant, { message_ids: ['shared'] })).toBe(99);
        expect((await readAll()).entries).toEqual([]);
      });

      test('trim drops by number and by age, and never lowers the floor', async () => {
        await append(
          range(1, 700).map((i) => frame(`${i}`)),
          { max_frames: 100_000 },
        );
        await setting.pass(5);
        const before_ms = await setting.now();
        await append(range(701, 710).map((i) => frame(`${i}`)));
        expect(await outbox.trim(tenant, { max_frames: 100_000, before_ms: 0 })).toBe(0);
        expect(await outbox.trim(tenant, { max_frames: 300, before_ms: 0 })).toBe(410);
        expect(bodies((await readAll()).entries)).toEqual(range(411, 710).map(String));
        expect(await outbox.trim(tenant, { max_frames: 100_000, before_ms: 0 })).toBe(410);
        expect(await outbox.trim(tenant, { max_frames: 100_000, before_ms })).toBe(700);
        expect(bodies((await readAll()).entries)).toEqual(range(701, 710).map(String));
        expect(await append([frame('711')])).toMatchObject({ cursors: [711], previous: 710 });
        expect(await outbox.trim(freshTenant(), { max_frames: 1, before_ms: 0 })).toBe(0);
      });

      test('after a seed with `last_known`: the jump is no gap, until retention passes it', async () => {
        const jumped = freshTenant();
        await outbox.seed(jumped, 1_000, 9_000, 90);
        expect(await outbox.heads([jumped])).toEqual([1_000]);
        expect(await outbox.read(jumped, 90, { limit: 10 })).toEqual({
          entries: [],
          next: 1_000,
          head: 1_000,
          floor: 1_000,
          last_known: 90,
        });
        expect(await append([frame('a')], { to: jumped, max_frames: 2 })).toMatchObject({ cursors: [1_001], previous: 90 });
        expect(await append([frame('b')], { to: jumped, max_frames: 2 })).toMatchObject({ cursors: [1_002], previous: 1_001 });
        expect(await outbox.read(jumped, 0, { limit: 10 })).toMatchObject({ floor: 1_000, last_known: 90 });
        await append([frame('c')], { to: jumped, max_frames: 2 });
        const page = await outbox.read(jumped, 90, { limit: 10 });
        expect(page).toMatchObject({ floor: 1_001, head: 1_003 });
        expect('last_known' in page).toBe(false);
        expect(bodies(page.entries)).toEqual(['b', 'c']);
      });

      test('after a seed without it, the first frame follows where the sequence was seeded', async () => {
        const jumped = freshTenant();
        await outbox.seed(jumped, 1_000, 9_000);
        expect(await append([frame('a', { key: 'k' })], { to: jumped })).toMatchObject({ cursors: [1_001], previous: 1_000 });
        expect('last_known' in (await outbox.read(jumped, 0, { limit: 1 }))).toBe(false);
      });
    });

    describe('forget', () => {
      test('exactly the entries of the messages go, those of several too, and a second time none', async () => {
        await append([
          frame('1', { message_ids: ['m1'] }),
          frame('2', { message_ids: ['m2'] }),
          frame('3', { message_ids: ['m1', 'm3'] }),
          frame('4'),
          frame('5', { message_ids: ['m11'] }),
        ]);
        expect(await outbox.forget(tenant, { message_ids: [] })).toBe(0);
        expect(await outbox.forget(tenant, { message_ids: ['m1', 'unknown', '__proto__', 'm1'] })).toBe(2);
        expect(bodies((await readAll()).entries)).toEqual(['2', '4', '5']);
        expect(await outbox.forget(tenant, { message_ids: ['m1', 'm3'] })).toBe(0);
        await append([frame('6', { message_ids: ['m1'] })]);
        expect(await outbox.forget(tenant, { message_ids: ['m1'] })).toBe(1);
        const page = await readAll();
        expect(bodies(page.entries)).toEqual(['2', '4', '5']);
        expect(page).toMatchObject({ next: 6, head: 6 });
      });

      test('exactly the entries of a lane go, over any number of pages', async () => {
        await append(range(1, 900).map((i) => frame(`${i}`, { lane: i % 3 === 0 ? 'chat\nt_1' : 'chat', message_ids: [`m${i}`] })));
        await append([frame('none')]);
        expect(await outbox.forget(tenant, { lane: 'chat\nt_1' })).toBe(300);
        expect(await outbox.forget(tenant, { lane: 'chat\nt_1' })).toBe(0);
        expect(await outbox.forget(tenant, { lane: '' })).toBe(0);
        expect((await readAll()).entries).toHaveLength(601);
        expect(await outbox.forget(tenant, { message_ids: ['m3', 'm4'] })).toBe(1);
        expect(await outbox.forget(freshTenant(), { lane: 'chat' })).toBe(0);
      });

      test('what went still supersedes what was before it', async () => {
        await append([
          frame('old', { supersedes: 's' }),
          frame('new', { supersedes: 's', message_ids: ['m'] }),
          frame('other', { supersedes: 'o' }),
        ]);
        await outbox.forget(tenant, { message_ids: ['m'] });
        expect(bodies((await readAll({ compact: true })).entries)).toEqual(['other']);
        await append([frame('newest', { supersedes: 's' })]);
        expect(bodies((await readAll({ compact: true })).entries)).toEqual(['other', 'newest']);
      });
    });

    describe('who listens', () => {
      test('a registered edge is in every later append, once, until its last device goes', async () => {
        await append([frame('a')]);
        expect(await register(device('d1'), { new: true })).toEqual({ head: 1, floor: 0, watermark: 1 });
        await register(device('d2', 'c2', 'e1'));
        await register(device('d3', 'c3', 'e2'));
        expect([...(await append([frame('b')])).edges].sort()).toEqual(['e1', 'e2']);
        await outbox.unregister(tenant, device('d1'));
        expect([...(await append([frame('c')])).edges].sort()).toEqual(['e1', 'e2']);
        await outbox.unregister(tenant, device('d2', 'c2', 'e1'));
        expect((await append([frame('d')])).edges).toEqual(['e2']);
        await outbox.unregister(tenant, device('d2', 'c2', 'e1'));
        await outbox.unregister(tenant, device('d3', 'c3', 'e2'));
        expect((await append([frame('e')])).edges).toEqual([]);
      });

      test('the newest connection of a device wins, and the older can no longer take it off', async () => {
        await register(device('d', 'c1', 'e1'));
        expect(await register(device('d', 'c2', 'e2'))).toMatchObject({ replaced: { edge_id: 'e1', connection_id: 'c1' } });
        expect((await append([frame('a')])).edges).toEqual(['e2']);
        await outbox.unregister(tenant, device('d', 'c1', 'e1'));
        expect((await append([frame('b')])).edges).toEqual(['e2']);
        expect('replaced' in (await register(device('d', 'c2', 'e2')))).toBe(false);
        expect(await register(device('d', 'c3', 'e2'))).toMatchObject({ replaced: { edge_id: 'e2', connection_id: 'c2' } });
        expect(await outbox.devices(tenant)).toEqual([{ device_id: 'd', watermark: 0, edge_id: 'e2', connection_id: 'c3' }]);
        await outbox.unregister(tenant, device('d', 'c3', 'e2'));
        expect((await append([frame('c')])).edges).toEqual([]);
        expect(await outbox.devices(tenant)).toEqual([{ device_id: 'd', watermark: 0 }]);
      });

      test('a lease that is not refreshed runs out; refreshed, it stays', async () => {
        await register(device('d1', 'c1', 'e1'));
        await register(device('d2', 'c2', 'e2'));
        await setting.pass(contractLease_ms / 2);
        expect(await outbox.refresh('e2' as EdgeId, [{ tenant_id: tenant, ...device('d2', 'c2') }])).toEqual([]);
        await setting.pass(contractLease_ms / 2 + 10);
        expect((await append([frame('a')])).edges).toEqual(['e2']);
        const found = await outbox.devices(tenant);
        expect(found).toContainEqual({ device_id: 'd1', watermark: 0 });
        expect(found).toContainEqual({ device_id: 'd2', watermark: 0, edge_id: 'e2', connection_id: 'c2' });
        await setting.pass(contractLease_ms + 10);
        await outbox.trim(tenant, { max_frames: 100, before_ms: 0 });
        expect((await append([frame('b')])).edges).toEqual([]);
        // Its edge is back and says so.
        await outbox.refresh('e1' as EdgeId, [{ tenant_id: tenant, ...device('d1', 'c1') }]);
        expect((await append([frame('c')])).edges).toEqual(['e1']);
        await outbox.unregister(tenant, device('d1', 'c1'));
        expect((await append([frame('d')])).edges).toEqual([]);
      });

      test('refresh registers what was lost, also of an unseeded tenant, and names the connections that were replaced', async () => {
        const lost = freshTenant();
        const held = [
          ...range(1, 600).map((i) => ({ tenant_id: tenant, ...device(`d${i}`) })),
          { tenant_id: lost, ...device('d1', 'other') },
        ];
        expect(await outbox.refresh('e1' as EdgeId, held)).toEqual([]);
        expect((await append([frame('a')])).edges).toEqual(['e1']);
        await outbox.seed(lost, 0, 10);
        expect((await append([frame('a')], { to: lost })).edges).toEqual(['e1']);
        await register(device('d7', 'newer', 'e2'));
        expect(await outbox.refresh('e1' as EdgeId, held)).toEqual(['c-d7']);
        expect(await outbox.refresh('e2' as EdgeId, [{ tenant_id: tenant, ...device('d7', 'newer') }])).toEqual([]);
        expect(await outbox.refresh('e1' as EdgeId, [])).toEqual([]);
        for (let i = 1; i <= 600; i++) if (i !== 7) await outbox.unregister(tenant, device(`d${i}`));
        expect((await append([frame('b')])).edges).toEqual(['e2']);
      });
    });

    describe('watermarks', () => {
      test('they only rise, whatever the order', async () => {
        const mark = (device_id: string, cursor: number) => ({ tenant_id: tenant, device_id: device_id as DeviceId, cursor });
        expect(await outbox.watermark(tenant, 'd' as DeviceId)).toBeUndefined();
        await outbox.confirm([mark('d', 5), mark('d', 3), mark('__proto__', 0)]);
        await outbox.confirm([mark('d', 4)]);
        await outbox.confirm([]);
        expect(await outbox.watermark(tenant, 'd' as DeviceId)).toBe(5);
        expect(await outbox.watermark(tenant, '__proto__' as DeviceId)).toBe(0);
        expect(await outbox.devices(tenant)).toHaveLength(2);
      });

      test('a new device begins at the head, a known one at the higher of what is kept and what is told', async () => {
        await append([frame('a'), frame('b')]);
        expect(await register(device('new'), { new: true })).toMatchObject({ watermark: 2 });
        await append([frame('c')]);
        expect(await register(device('new', 'again'), { new: true })).toMatchObject({ watermark: 2, head: 3 });
        expect(await register(device('known'), { watermark: 1 })).toMatchObject({ watermark: 1 });
        await outbox.confirm([{ tenant_id: tenant, device_id: 'known' as DeviceId, cursor: 3 }]);
        expect(await register(device('known', 'again'), { watermark: 1 })).toMatchObject({ watermark: 3 });
        expect(await outbox.watermark(tenant, 'known' as DeviceId)).toBe(3);
      });

      test('many tenants and devices in one call', async () => {
        const second = freshTenant();
        const marks = [tenant, second].flatMap((tenant_id) =>
          range(1, 600).map((i) => ({ tenant_id, device_id: `d${i}` as DeviceId, cursor: i })),
        );
        await outbox.confirm(marks);
        expect(await outbox.watermark(second, 'd600' as DeviceId)).toBe(600);
        expect(await outbox.devices(tenant)).toHaveLength(600);
      });
    });

    describe('attempts', () => {
      const rate = { per_minute: 600, burst: 3 };
      const of = () => `10.0.0.1 ${freshTenant()}`;

      test('LIM8: one bucket for all who ask; what is given back can be taken again, and more comes with time', async () => {
        const name = of();
        const taken = await Promise.all([outbox, other, outbox].map((each) => each.attempt(name, rate)));
        expect(taken).toEqual([0, 0, 0]);
        const wait = await other.attempt(name, rate);
        expect(wait).toBeGreaterThan(0);
        expect(wait).toBeLessThanOrEqual(100);
        expect(await outbox.attempt(of(), rate)).toBe(0);
        expect(await other.attempt(name, rate, -1)).toBe(0);
        expect(await outbox.attempt(name, rate)).toBe(0);
        await setting.pass(wait + 5);
        expect(await outbox.attempt(name, rate)).toBe(0);
      });

      test('giving back fills it, and no more', async () => {
        const name = of();
        for (let n = 0; n < 5; n++) await outbox.attempt(name, rate, -1);
        const answers = [];
        for (let n = 0; n < 6; n++) answers.push(await outbox.attempt(name, { per_minute: 1, burst: 3 }));
        expect(answers.filter((wait) => wait === 0)).toHaveLength(3);
      });
    });

    describe('values and the end', () => {
      test('values are set, overwritten and removed in one call', async () => {
        await outbox.put(tenant, { a: '1', b: '2', 'turn:x': '{"t":"ü"}' });
        await outbox.put(tenant, { a: null, b: '', c: '3', missing: null });
        expect(await outbox.values(tenant)).toEqual(
          new Map([
            ['b', ''],
            ['c', '3'],
            ['turn:x', '{"t":"ü"}'],
          ]),
        );
        await outbox.put(tenant, {});
        expect(await outbox.values(freshTenant())).toEqual(new Map());
      });

      test('drop leaves nothing of a tenant, and nothing happens to another', async () => {
        const second = freshTenant();
        await outbox.seed(second, 0, 10);
        for (const to of [tenant, second]) {
          await append([frame('a', { key: 'k', message_ids: ['m'], supersedes: 's' })], { to });
          await outbox.put(to, { a: '1' });
          await outbox.register(to, { ...device('d'), watermark: 0, new: true });
        }
        await outbox.drop(tenant);
        expect(await refusal([frame('a')])).toBe('unseeded');
        expect(await outbox.values(tenant)).toEqual(new Map());
        expect(await outbox.devices(tenant)).toEqual([]);
        expect(await outbox.forget(tenant, { message_ids: ['m'] })).toBe(0);
        await outbox.seed(tenant, 0, 10);
        expect(await append([frame('b', { key: 'k' })])).toMatchObject({ cursors: [1], fresh: [true], edges: [] });
        expect(await append([frame('a', { key: 'k' })], { to: second })).toMatchObject({ cursors: [1], fresh: [false], edges: ['e1'] });
      });

      test('after close every call says so', async () => {
        const closed = await setting.connect();
        expect(closed.connected).toBe(true);
        await closed.close();
        await closed.close();
        expect(closed.connected).toBe(false);
        await expect(closed.heads([tenant])).rejects.toMatchObject({ name: 'OutboxUnavailable' });
      });
    });
  });
}
