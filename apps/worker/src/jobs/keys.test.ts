import type { TenantId } from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { manualClock, recordingMeter } from '@iris/runtime/testing';
import type { Store } from '@iris/store';
import { expect, test } from '@jest/globals';
import { createKeyExpiry } from './keys.js';

/** Tenants with so many rows each, and who was asked. */
function setting(rows: Record<string, number>) {
  const asked: string[] = [];
  const left = new Map(Object.entries(rows));
  const ids = [...left.keys()].sort();
  const list: Store['tenants']['list'] = async ({ after, limit }) =>
    ids
      .filter((id) => after === undefined || id > after)
      .slice(0, limit)
      .map((id) => ({ tenant_id: id as TenantId }) as never);
  const expire: Store['keys']['expire'] = async (tenant_id, { limit }) => {
    asked.push(tenant_id);
    const expired = Math.min(limit, left.get(tenant_id)!);
    left.set(tenant_id, left.get(tenant_id)! - expired);
    return { expired, more: expired === limit };
  };
  const store = { tenants: { list }, keys: { expire } } as unknown as Store;
  const meter = recordingMeter();
  const run = createKeyExpiry({ store, clock: manualClock(), log: silentLog, meter }, { keys_kept_ms: 1 });
  return { run, asked, left, total: () => meter.total('iris_worker_expired_keys_total') };
}

test('a run takes a bounded number of rows; who has few waits for nobody who has many', async () => {
  const { run, left, total, asked } = setting({ a: 90_000, b: 3, c: 700, d: 0 });
  await run();
  expect(total()).toBe(50_000);
  expect([...left]).toEqual([
    ['a', 40_703],
    ['b', 0],
    ['c', 0],
    ['d', 0],
  ]);
  expect(asked.slice(0, 6)).toEqual(['a', 'b', 'c', 'd', 'a', 'c']);
  await run();
  expect([...left.values()].every((rows) => rows === 0)).toBe(true);
});

test('when there is more than a run may take, the next one begins behind the last; each is asked once in a round', async () => {
  const many = Object.fromEntries(Array.from({ length: 450 }, (_, n) => [`t${String(n).padStart(3, '0')}`, 500]));
  const { run, asked, total, left } = setting(many);
  await run();
  expect(asked).toEqual(Object.keys(many).slice(0, 100));
  expect(total()).toBe(50_000);
  for (let runs = 1; runs < 5; runs++) await run();
  expect([...left.values()].every((rows) => rows === 0)).toBe(true);
  asked.length = 0;
  await run();
  expect([...asked].sort()).toEqual(Object.keys(many));
});
