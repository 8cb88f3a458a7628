import type { AgentId, DeviceId, TenantId } from '@iris/protocol';
import { type LedgerKey, migrate, type PushLedgerRow, prismaStore, type Store } from '@iris/store';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Plan, planners, removed, type Sent, sentBy } from './plans.js';
import { databaseForTests } from './postgres-servers.js';

/** What Postgres looks at for statements that name many rows of one tenant, among many tenants with one: the very statements of the store. */

const large = 'tn_large' as TenantId;
const devices = 400;
const batch = 100;
const frames = 5;
/** So many that no version of Postgres would rather read all of a table than look a key up: of a small one it would, and may. */
const others = 2_000;
const names = Array.from({ length: devices }, (_, n) => `d${n}` as DeviceId);

let database: Awaited<ReturnType<typeof databaseForTests>>;
let store: Store;
let client: pg.Client;
const planned = planners();

beforeAll(async () => {
  database = await databaseForTests();
  await migrate(database.url);
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  store = prismaStore({ url: database.url });
  await store.tenants.create({ tenant_id: large, name: 'Large', agent_id: 'ag_large' as AgentId, at: 1 });
  await client.query(
    `INSERT INTO tenant SELECT (jsonb_populate_record(t, jsonb_build_object('tenant_id', 'tn_' || n))).* FROM tenant t, generate_series(1, ${others}) n`,
  );
  const device = `INSERT INTO device (tenant_id, device_id, name, caps, token_id, created_at, last_seen_at)`;
  await client.query(`${device} SELECT 'tn_' || n, 'd1', '', '{}', 't', 1, 1 FROM generate_series(1, ${others}) n`);
  await client.query(`${device} SELECT $1, 'd' || n, '', '{}', 't', 1, 1 FROM generate_series(0, $2::int - 1) n`, [large, devices]);
  await client.query(
    `INSERT INTO push_target (tenant_id, device_id, kind, address, registered_at) SELECT tenant_id, device_id, 'fcm', tenant_id || device_id, 1 FROM device`,
  );
  for (let cursor = 1; cursor <= frames; cursor++) await store.pushLedger.decide(rowsOf(cursor));
  for (let from = 1; from <= others; from += 100)
    await store.pushLedger.decide(
      Array.from({ length: 100 }, (_, n) => ({ ...rowsOf(1)[0]!, tenant_id: `tn_${from + n}` as TenantId, device_id: 'd1' as DeviceId })),
    );
}, 120_000);
afterAll(async () => {
  await store?.close();
  await planned.end();
  await client?.end();
  await database?.end();
}, 30_000);

function rowsOf(cursor: number): PushLedgerRow[] {
  const row = {
    class: 'cron',
    chat_id: 'android:default',
    thread_id: null,
    state: 'pending',
    why: null,
    with_cursor: null,
    provider: 'fcm',
  } as const;
  const rest = { answer: null, attempts: 0, due_at: 1, decided_at: 1, sent_at: null, withdrawn_at: null };
  return names.map((device_id) => ({ ...row, ...rest, tenant_id: large, device_id, cursor, covers: cursor }) as PushLedgerRow);
}

/** Rows that any step looked at, or put beside one of another. */
const looked = (plan: Plan): number =>
  plan['Actual Loops'] * (plan['Actual Rows'] + removed(plan) + (plan['Rows Removed by Join Filter'] ?? 0)) +
  (plan.Plans ?? []).reduce((sum, one) => sum + looked(one), 0);

async function lookedAt({ text, values, options }: Sent): Promise<number> {
  const on = await planned.on(database.url, options);
  await on.query(`BEGIN; SET LOCAL ROLE iris_service; SET LOCAL iris.tenants = ${pg.escapeLiteral(large)}`);
  const { rows } = await on.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, [...values]);
  await on.query('ROLLBACK');
  return looked(rows[0]['QUERY PLAN'][0].Plan);
}

const keys: readonly LedgerKey[] = rowsOf(3).slice(0, batch);
const asked: readonly (readonly [string, number, () => Promise<unknown>])[] = [
  ['targets', devices, () => store.pushTargets.list(large)],
  ['decide', devices, () => store.pushLedger.decide(rowsOf(frames + 1))],
  ['claim', batch, () => store.pushLedger.claim(keys, 2, 3)],
  [
    'record',
    batch,
    () =>
      store.pushLedger.record(
        keys.map((key) => ({ ...key, state: 'sent', why: null, provider: 'fcm', answer: '200', attempted: true, due_at: 0, at: 2 })),
      ),
  ],
  ['confirm', batch, () => store.devices.confirm(keys.map((key) => ({ ...key, at: 5 })))],
  ['withdrawn', batch, () => store.pushLedger.withdrawn(keys, 4)],
];

test.each(['before the server has looked at the tables', 'when the average tenant has one device'])(
  'what names many rows of a large tenant looks at as many: %s',
  async (when) => {
    const found: [string, number][] = [];
    const sent = new Map<string, Sent>();
    for (const [name, , ask] of asked) sent.set(name, (await sentBy(ask)).at(-1)!);
    if (when !== 'before the server has looked at the tables') await client.query('vacuum analyze');
    for (const [name, rows] of asked) found.push([name, (await lookedAt(sent.get(name)!)) / rows]);
    // Each row is seen by every step on its way, and with it the few decisions about its device: tens, not hundreds.
    expect(found.filter(([, per_row]) => per_row > 60)).toEqual([]);
  },
  60_000,
);
