import type { TenantId } from '@iris/protocol';
import { silentLog, systemClock } from '@iris/runtime';
import { migrate, prismaStore, type Store } from '@iris/store';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Connections, connections } from '../../packages/store/src/prisma-store/connections.js';
import { databaseForTests } from './postgres-servers.js';
import { userMessage } from './rows.js';

/** Tables that are no tenant's. One that is not named here has a `tenant_id`, and with it the lock. */
const ofNoTenant = new Set(['_prisma_migrations']);

describe('ENV27: Postgres’s own lock between tenants', () => {
  const [mine, theirs] = ['mine' as TenantId, 'theirs' as TenantId];
  let database: { url: string; end(): Promise<void> };
  let store: Store;
  let sql: Connections;
  let owner: pg.Client;
  const tables = async () => {
    const found = await owner.query<{ name: string; guarded: boolean; policies: string[] }>(`
      SELECT c.relname AS name, c.relrowsecurity AS guarded, array(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid ORDER BY 1) AS policies
      FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`);
    return found.rows.filter(({ name }) => !ofNoTenant.has(name));
  };

  beforeAll(async () => {
    database = await databaseForTests();
    await migrate(database.url);
    store = prismaStore({ url: database.url });
    sql = connections({ url: database.url, poolSize: 1, clock: systemClock, log: silentLog });
    owner = new pg.Client({ connectionString: database.url });
    await owner.connect();
    for (const tenant_id of [mine, theirs]) {
      await store.tenants.create({ tenant_id, name: 'T', agent_id: 'agent' as never, at: 1 });
      const token = {
        tenant_id,
        token_id: 'tk' as never,
        kind: 'device',
        hash: 'h',
        device_id: null,
        agent_id: null,
        created_at: 1,
      } as const;
      await store.tokens.create(token);
      await store.messages.insert([{ message: userMessage(tenant_id, { message_id: 'm_1' as never, text: `of ${tenant_id}` }) }]);
      await store.audit.write({ tenant_id, at: 1, actor: 'a', action: 'b', subject: 'c' });
    }
  });
  afterAll(async () => {
    await Promise.all([store?.close(), sql?.close(), owner?.end()]);
    await database?.end();
  });

  test('every table has it, also those that later migrations make', async () => {
    for (const table of await tables())
      expect(table).toEqual({ name: table.name, guarded: true, policies: ['everywhere', 'of_the_tenants_named'] });
    await owner.query('CREATE TABLE later (tenant_id TEXT, n INT GENERATED ALWAYS AS IDENTITY)');
    await expect(sql.rows('SELECT 1 FROM later WHERE tenant_id = $1', [mine])).rejects.toThrow('permission denied');
    await owner.query('SELECT iris_guard_tables()');
    expect((await tables()).find(({ name }) => name === 'later')).toMatchObject({ guarded: true });
    await sql.of([mine, theirs]).rows('INSERT INTO later (tenant_id) VALUES ($1), ($2)', [mine, theirs]);
    expect(await sql.rows('SELECT tenant_id FROM later WHERE $1 = $1', [mine])).toEqual([{ tenant_id: mine }]);
    await owner.query('DROP TABLE later');
  });

  test('a statement that forgets its tenant sees the rows of the one that its first value names, and no others', async () => {
    for (const { name } of await tables()) {
      const seen = await sql.rows<{ tenant_id: string }>(`SELECT tenant_id FROM ${name} WHERE $1::text IS NOT NULL`, [mine]);
      expect([name, seen.every(({ tenant_id }) => tenant_id === mine)]).toEqual([name, true]);
    }
    expect(await sql.rows('SELECT text FROM message WHERE $1::text IS NOT NULL', [mine])).toEqual([{ text: 'of mine' }]);
    expect(await sql.of([mine, theirs]).rows('SELECT text FROM message ORDER BY text')).toHaveLength(2);
    expect(await sql.everywhere.rows('SELECT text FROM message')).toHaveLength(2);
  });

  test('nor does it change or make any', async () => {
    expect(await sql.rows(`UPDATE message SET text = 'stolen' WHERE $1::text IS NOT NULL RETURNING tenant_id`, [mine])).toEqual([
      { tenant_id: mine },
    ]);
    await sql.rows(`UPDATE message SET text = 'of mine' WHERE tenant_id = $1`, [mine]);
    const give = 'UPDATE token SET tenant_id = $2 WHERE tenant_id = $1';
    await expect(sql.rows(give, [mine, theirs])).rejects.toThrow('row-level security');
    const make = `INSERT INTO device (tenant_id, device_id, name, caps, token_id, created_at, last_seen_at) VALUES ($2, $1, '', '{}', 't', 1, 1)`;
    await expect(sql.rows(make, [mine, theirs])).rejects.toThrow('row-level security');
    expect(await sql.rows('DELETE FROM message WHERE $1::text IS NOT NULL AND tenant_id = $2 RETURNING 1', [mine, theirs])).toEqual([]);
    expect(await store.messages.get(theirs, 'm_1' as never)).toMatchObject({ text: 'of theirs' });
  });

  test('the name of the tenant ends with its statement: nothing is left on the connection', async () => {
    await sql.rows('SELECT 1 FROM message WHERE tenant_id = $1', [mine]);
    await sql.everywhere.rows('SELECT 1 FROM message');
    const bare = () => sql.pool.query('SELECT current_user, (SELECT count(*)::int FROM message) AS messages');
    expect((await bare()).rows).toEqual([{ current_user: 'iris_service', messages: 0 }]);
    await sql.transaction(async (tx) => {
      expect(await tx.everywhere.rows('SELECT current_user, count(*)::int AS n FROM message')).toEqual([
        { current_user: 'iris_everywhere', n: 2 },
      ]);
      expect(await tx.rows('SELECT current_user, count(*)::int AS n FROM message WHERE $1 = $1', [mine])).toEqual([
        { current_user: 'iris_service', n: 1 },
      ]);
    });
    expect((await bare()).rows).toEqual([{ current_user: 'iris_service', messages: 0 }]);
    await expect(sql.rows('SELECT 1 FROM nothing WHERE $1 = $1', [mine])).rejects.toThrow('does not exist');
    expect((await bare()).rows).toEqual([{ current_user: 'iris_service', messages: 0 }]);
  });

  test('a statement that names no tenant is refused before it is sent', async () => {
    await expect(sql.rows('SELECT 1', [])).rejects.toThrow('whose rows');
    await expect(sql.rows('SELECT $1::int', [1])).rejects.toThrow('whose rows');
  });

  test('Prisma’s look-ups of one turn of the loop, of several tenants, each find their own', async () => {
    const [a, b, c] = await Promise.all([
      store.tokens.find(mine, 'h'),
      store.tokens.find(theirs, 'h'),
      store.tokens.find('none' as never, 'h'),
    ]);
    expect([a?.tenant_id, b?.tenant_id, c]).toEqual([mine, theirs, undefined]);
    const rows = await Promise.all([store.messages.get(mine, 'm_1' as never), store.messages.get(theirs, 'm_1' as never)]);
    expect(rows.map((row) => row?.text)).toEqual(['of mine', 'of theirs']);
  });

  test('the services may log in as a role that owns nothing: it works, cannot step out, and migrates nothing', async () => {
    const login = `iris_login_${process.pid}`;
    await owner.query(`CREATE ROLE ${login} LOGIN PASSWORD 'p' IN ROLE iris_service, iris_everywhere`);
    const url = Object.assign(new URL(database.url), { username: login, password: 'p' }).href;
    const limited = prismaStore({ url });
    const bare = new pg.Client({ connectionString: url });
    try {
      expect(await migrate(url)).toEqual([]);
      expect((await limited.tokens.find(mine, 'h'))?.tenant_id).toBe(mine);
      expect(await limited.tenants.list({ limit: 9 })).toHaveLength(2);
      await bare.connect();
      await bare.query('SET ROLE iris_service');
      expect((await bare.query('SELECT * FROM message')).rows).toEqual([]);
      for (const text of ['DROP TABLE message', 'ALTER TABLE message DISABLE ROW LEVEL SECURITY', 'SELECT * FROM _prisma_migrations'])
        await expect(bare.query(text)).rejects.toThrow(/permission denied|must be owner/);
    } finally {
      await Promise.all([limited.close(), bare.end()]);
      await owner.query(`DROP ROLE ${login}`);
    }
  });

  test('what was done stays written: the services cannot change the audit', async () => {
    await expect(sql.rows(`UPDATE audit SET action = 'nothing' WHERE tenant_id = $1`, [mine])).rejects.toThrow('permission denied');
    await expect(sql.everywhere.rows('DELETE FROM audit')).rejects.toThrow('permission denied');
  });

  test('the paths of every message are still found by index, and one tenant’s in one partition', async () => {
    const plan = async (text: string, values: readonly unknown[]) =>
      (await sql.rows<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, values)).map((row) => row['QUERY PLAN']).join('\n');
    const page = await plan(
      `SELECT * FROM message WHERE tenant_id = $1 AND chat_id = 'c' AND thread_id = '' AND deleted_at IS NULL AND (cursor, seq) < (5::bigint, 1::bigint)
       ORDER BY cursor DESC NULLS FIRST, seq DESC LIMIT 51`,
      [mine],
    );
    expect(page).toContain('Index Scan Backward');
    expect(page).not.toContain('Sort');
    expect(page.match(/message_p\d\d/g)?.every((name, _, all) => name === all[0])).toBe(true);
    expect(await plan('SELECT * FROM token WHERE tenant_id = $1 AND hash = $2', [mine, 'h'])).toContain('Index');
  });
});
