import type { AgentId, TenantId } from '@iris/protocol';
import { migrate, prismaStore, type Store } from '@iris/store';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { databaseForTests } from './postgres-servers.js';
import { userMessage } from './rows.js';

/** What several processes do to each other in Postgres, one step at a time: another process is a client of the test's. */
describe('Postgres: one process waits for another', () => {
  const tenant_id = 'tenant' as TenantId;
  let database: { url: string; end(): Promise<void> };
  let store: Store;
  let other: pg.Client;
  let watch: pg.Client;

  const client = async (): Promise<pg.Client> => {
    const made = new pg.Client({ connectionString: database.url, application_name: 'another process' });
    await made.connect();
    return made;
  };
  /** Until so many of the store's statements wait for a lock. */
  async function waiting(count: number): Promise<void> {
    const ask = `select count(*)::int as n from pg_stat_activity where application_name = 'iris' and wait_event_type = 'Lock'`;
    for (;;) if ((await watch.query(ask)).rows[0].n >= count) return;
  }

  beforeAll(async () => {
    database = await databaseForTests();
    await migrate(database.url);
    store = prismaStore({ url: database.url });
    [other, watch] = await Promise.all([client(), client()]);
    await store.tenants.create({ tenant_id, name: 'T', agent_id: 'agent' as AgentId, at: 1 });
  }, 120_000);
  afterEach(() => other.query('rollback').then(() => {}));
  afterAll(async () => {
    await Promise.all([other?.end(), watch?.end(), store?.close()]);
    await database?.end();
  }, 30_000);

  test('a lane goes away between the look at it and the insert: that row is no_lane, the others are in', async () => {
    const made = await store.channels.create({ tenant_id, name: 'C', auto: false, idempotency_key: 'c1', max: 10, at: 1 });
    if (typeof made === 'string') throw new Error(made);
    const rows = [userMessage(tenant_id), userMessage(tenant_id, { chat_id: made.row.chat_id }), userMessage(tenant_id)];
    await other.query('begin');
    await other.query('delete from channel where tenant_id = $1 and chat_id = $2', [tenant_id, made.row.chat_id]);
    const inserting = store.messages.insert(rows.map((message) => ({ message })));
    await waiting(1);
    await other.query('commit');
    expect(await inserting).toEqual([{ row: rows[0], inserted: true }, 'no_lane', { row: rows[2], inserted: true }]);
  });

  test('two inserts that each hold what the other wants: both come through', async () => {
    const [x, y] = [userMessage(tenant_id), userMessage(tenant_id)];
    const put = `insert into message (tenant_id, message_id, chat_id, role, text, search_text, ts) values ($1, $2, 'android:default', 'user', 'theirs', '', 1)`;
    await other.query('begin');
    await other.query(put, [tenant_id, x.message_id]);
    const inserting = store.messages.insert([{ message: y }, { message: x }]);
    await waiting(1);
    // Now each waits for the other. Postgres ends the one that waited first, which tries again.
    await other.query(put, [tenant_id, y.message_id]);
    await other.query('commit');
    expect(await inserting).toMatchObject([
      { row: { text: 'theirs' }, inserted: false },
      { row: { text: 'theirs' }, inserted: false },
    ]);
  });

  test('an insert that waits for one that fails goes in itself', async () => {
    const row = userMessage(tenant_id, { idempotency_key: 'k1' });
    await other.query('begin');
    const put = `insert into message (tenant_id, message_id, chat_id, role, text, search_text, ts, idempotency_key) values ($1, 'm_x', 'android:default', 'user', '', '', 1, 'k1')`;
    await other.query(put, [tenant_id]);
    const inserting = store.messages.insert([{ message: row }]);
    await waiting(1);
    await other.query('rollback');
    expect(await inserting).toEqual([{ row, inserted: true }]);
  });

  test('a lock that nobody gives back: the call fails within 5 s, and its connection serves on', async () => {
    await other.query('begin');
    await other.query('select 1 from tenant where tenant_id = $1 for update', [tenant_id]);
    const begin = performance.now();
    const calls = Array.from({ length: 12 }, () => store.tenants.reserveCursors(tenant_id, 1));
    const results = await Promise.allSettled(calls);
    expect(performance.now() - begin).toBeLessThan(7_000);
    expect(results.every((result) => result.status === 'rejected')).toBe(true);
    const before = (await store.tenants.get(tenant_id))?.cursor_reserved;
    await other.query('rollback');
    expect(await store.tenants.reserveCursors(tenant_id, 5)).toEqual({ from: before, to: before! + 5 });
  }, 20_000);
});
