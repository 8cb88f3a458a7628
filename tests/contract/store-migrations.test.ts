import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TenantId } from '@iris/protocol';
import { migrate, prismaStore } from '@iris/store';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { databaseForTests } from './postgres-servers.js';

const folder = join(import.meta.dirname, '../../packages/store');
const schema = join(folder, 'prisma/schema.prisma');
const all = readdirSync(join(folder, 'prisma/migrations'))
  .filter((name) => /^\d/.test(name))
  .sort();

describe('migrations', () => {
  let database: { url: string; end(): Promise<void> };
  const scratch = mkdtempSync(join(tmpdir(), 'iris-schema-'));
  const prisma = (...args: string[]) => {
    const env = { ...process.env, DATABASE_URL: database.url };
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'scripts/prisma.mjs'), ...args], {
      env,
      encoding: 'utf8',
    });
    return { status, output: `${stdout}${stderr}` };
  };
  const withClient = async <T>(use: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    return use(client).finally(() => client.end());
  };

  /** As an older version left the database. */
  async function applyBefore(client: pg.Client, version: string): Promise<void> {
    await client.query(`create table _prisma_migrations (id varchar(36) primary key, checksum varchar(64) not null, finished_at timestamptz,
      migration_name varchar(255) not null, logs text, rolled_back_at timestamptz, started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`);
    for (const migration of all.filter((one) => one < version)) {
      const sql = readFileSync(join(folder, 'prisma/migrations', migration, 'migration.sql'), 'utf8');
      await client.query(sql);
      const checksum = createHash('sha256').update(sql).digest('hex');
      const row =
        'insert into _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count) values ($1, $2, now(), $1, 1)';
      await client.query(row, [migration, checksum]);
    }
  }

  beforeAll(async () => {
    database = await databaseForTests();
  }, 120_000);
  afterAll(async () => {
    rmSync(scratch, { recursive: true, force: true });
    await database?.end();
  }, 30_000);

  test('an empty database gets all of them; many callers at once apply each once; a second time there is nothing to do', async () => {
    const results = await Promise.all([migrate(database.url), migrate(database.url), migrate(database.url)]);
    expect(results.flat()).toEqual(all);
    expect(await migrate(database.url)).toEqual([]);
    const applied = 'select migration_name, finished_at from _prisma_migrations order by migration_name';
    const { rows } = await withClient((client) => client.query(applied));
    expect(rows).toEqual(all.map((migration_name) => ({ migration_name, finished_at: expect.any(Date) })));
  }, 60_000);

  test('a database that is not there is made', async () => {
    const address = new URL(database.url);
    address.pathname += '_new';
    expect((await Promise.all([migrate(address.href), migrate(address.href)])).flat()).toEqual(all);
    await withClient((client) => client.query(`drop database ${address.pathname.slice(1)} with (force)`));
  }, 60_000);

  test.each(['0003', '0002'])(
    'SEA1: messages that stood before the search index, in a database that lacks %s and what follows, are found by it, and it is built beside who writes; what was interrupted goes on',
    async (since) => {
      const address = new URL(database.url);
      address.pathname += `_old_${since}`;
      const name = address.pathname.slice(1);
      await withClient((client) => client.query(`create database ${name}`));
      const client = new pg.Client({ connectionString: address.href });
      await client.connect();
      const store = prismaStore({ url: address.href });
      try {
        await applyBefore(client, since);
        await client.query(`create table said (query text); create function say() returns event_trigger language plpgsql as $$
        begin insert into said values (current_query()); end $$; create event trigger say on ddl_command_start execute function say()`);
        await client.query(`insert into tenant (tenant_id, name, created_at) values ('tn_old', 'Old', 1)`);
        await client.query(`insert into channel (tenant_id, chat_id, kind, name, is_default, auto, created_at, number)
        values ('tn_old', 'android:default', 'default', 'Default', true, false, 1, 0)`);
        await client.query(`insert into message (tenant_id, message_id, chat_id, thread_id, role, text, search_text, ts, cursor, deleted_at)
        select 'tn_old', 'm_' || n, 'android:default', '', 'user', case when n % 500 = 7 then 'Ein alter Körper 天气 ' || n else 'Filler ' || n end, 'as it was', n, n,
        case when n = 507 then 9 end from generate_series(1, 2600) as n`);
        expect(await migrate(address.href)).toEqual(all.filter((migration) => migration >= since));
        // Whoever builds an index of a table in a transaction keeps its writers out until the end of it.
        const built = (await client.query<{ query: string }>(`select query from said where query ~* 'index.* on (only )?"message'`)).rows;
        expect(built.length).toBeGreaterThan(30);
        expect(built.filter(({ query }) => !/INDEX CONCURRENTLY|ON ONLY "message"/.test(query))).toEqual([]);
        await client.query('drop event trigger say; drop function say; drop table said');
        const found = async (text: string) =>
          (await store.messages.search('tn_old' as TenantId, { text, limit: 50 })).rows.map(({ message_id }) => message_id);
        const old = ['m_2507', 'm_2007', 'm_1507', 'm_1007', 'm_7'];
        for (const text of ['körper', 'orpe', '天气', 'ALTER -filler']) expect(await found(text)).toEqual(old);
        expect(await found('"as it was"')).toEqual([]);
        // As when the process died before all were folded.
        await client.query(`update message set search_grams = null, search_text = 'as it was' where ts < 1000`);
        expect(await found('körper')).toEqual(old.slice(0, 4));
        expect(await migrate(address.href)).toEqual([]);
        expect(await found('körper')).toEqual(old);
        expect((await client.query('select count(*)::int as n from message where search_grams is null')).rows).toEqual([{ n: 0 }]);
        // Built beside those who write, to the same end as in an empty database, but for the names of partitions' indexes.
        const shapes = `select c.relname as table_name, i.indisvalid as valid, i.indisunique as only_once,
        regexp_replace(pg_get_indexdef(i.indexrelid), '(INDEX )\\S+', '\\1') as definition, inhparent::regclass::text as of
        from pg_index i join pg_class c on c.oid = i.indrelid left join pg_inherits on inhrelid = i.indexrelid
        where c.relname like 'message%' order by 1, 4`;
        const fresh = await withClient((one) => one.query(shapes));
        expect((await client.query(shapes)).rows).toEqual(fresh.rows);
        expect(fresh.rows.length).toBeGreaterThan(100);
      } finally {
        await store.close();
        await client.end();
        await withClient((admin) => admin.query(`drop database ${name} with (force)`));
      }
    },
    60_000,
  );

  test('an index that was being built beside the writers when its process died is built anew', async () => {
    const address = new URL(database.url);
    address.pathname += '_half';
    const name = address.pathname.slice(1);
    await withClient((client) => client.query(`create database ${name}`));
    const client = new pg.Client({ connectionString: address.href });
    await client.connect();
    try {
      await applyBefore(client, '0003');
      await client.query(`insert into tenant (tenant_id, name, created_at) values ('tn', 'T', 1)`);
      await client.query(`insert into channel (tenant_id, chat_id, kind, name, is_default, auto, created_at, number)
        values ('tn', 'android:default', 'default', 'Default', true, false, 1, 0)`);
      await client.query(`insert into message (tenant_id, message_id, chat_id, thread_id, role, text, search_text, ts)
        values ('tn', 'm_1', 'android:default', '', 'user', 'one', 'one', 1)`);
      // What is left of it: the column, the index of the whole, one of a partition that was attached, and one that is not valid.
      await client.query('alter table message add column search_grams integer[]');
      await client.query('create index message_search_grams_idx on only message using gin (search_grams)');
      await client.query('create index message_p00_search_grams_idx on message_p00 using gin (search_grams)');
      await client.query('alter index message_search_grams_idx attach partition message_p00_search_grams_idx');
      await client.query('create index message_p01_search_grams_idx on message_p01 using gin (search_grams)');
      await client.query(`update pg_index set indisvalid = false where indexrelid = 'message_p01_search_grams_idx'::regclass`);
      expect(await migrate(address.href)).toEqual(all.filter((migration) => migration >= '0003'));
      const invalid = `select indexrelid::regclass::text from pg_index where not indisvalid`;
      expect((await client.query(invalid)).rows).toEqual([]);
      expect(await migrate(address.href)).toEqual([]);
    } finally {
      await client.end();
      await withClient((admin) => admin.query(`drop database ${name} with (force)`));
    }
  }, 60_000);

  test('the migrations make exactly what the schema says', () => {
    // The words count too: an engine that died would also leave status 0 behind.
    const same = { status: 0, output: expect.stringContaining('No difference detected') };
    expect(prisma('migrate', 'diff', '--from-migrations', 'prisma/migrations', '--to-schema', schema, '--exit-code')).toMatchObject(same);
    expect(prisma('migrate', 'diff', '--from-config-datasource', '--to-schema', schema, '--exit-code')).toMatchObject(same);
  }, 60_000);

  test('and the comparison notices a column, an index and a key that differ', () => {
    const source = readFileSync(schema, 'utf8');
    const changes: [string, string][] = [
      ['  client_ref      String?\n', '  client_ref      String?\n  forgotten       String?\n'],
      ['  @@index([tenant_id, chat_id, thread_id, cursor, seq])\n', ''],
      ['onDelete: Cascade, onUpdate: NoAction)\n  files ', 'onDelete: Restrict, onUpdate: NoAction)\n  files '],
    ];
    for (const [from, to] of changes) {
      expect(source.split(from)).toHaveLength(2);
      const other = join(scratch, 'schema.prisma');
      writeFileSync(other, source.replace(from, to));
      expect(prisma('migrate', 'diff', '--from-config-datasource', '--to-schema', other, '--exit-code').status).toBe(2);
    }
  }, 120_000);

  test('prisma’s own view of the database is the same', () => {
    expect(prisma('migrate', 'status')).toMatchObject({ status: 0, output: expect.stringContaining('up to date') });
    const unreachable = spawnSync(process.execPath, [join(folder, 'scripts/prisma.mjs'), 'migrate', 'status'], {
      env: { ...process.env, DATABASE_URL: 'postgresql://iris@127.0.0.1:1/x' },
      encoding: 'utf8',
    });
    expect(unreachable.status).toBe(1);
    expect(unreachable.stderr).toContain('P1001');
  }, 60_000);

  test('messages lie in 16 partitions, each tenant’s in one', async () => {
    const { rows } = await withClient((client) =>
      client.query(`select count(*)::int as n from pg_inherits where inhparent = 'message'::regclass`),
    );
    expect(rows).toEqual([{ n: 16 }]);
  });

  test('the page before a message, the owed, and a lane’s next turn are found by index', async () => {
    const plans = await withClient(async (client) => {
      await client.query('set enable_seqscan = off');
      const explain = async (query: string) => (await client.query(`explain ${query}`)).rows.map((row) => row['QUERY PLAN']).join('\n');
      return {
        page: await explain(
          `select * from message where tenant_id = 't' and chat_id = 'c' and thread_id = '' and deleted_at is null and (cursor, seq) < (5::bigint, 1::bigint) order by cursor desc nulls first, seq desc limit 51`,
        ),
        owed: await explain(`select * from message where cursor is null and deleted_at is null and ts < 5 order by ts, seq limit 10`),
        turn: await explain(
          `select * from turn where tenant_id = 't' and chat_id = 'c' and thread_id = '' and state = 'queued' order by position limit 1`,
        ),
      };
    });
    expect(plans.page).toContain('Index Scan Backward');
    expect(plans.page).not.toContain('Sort');
    // One tenant, one partition.
    expect(plans.page.match(/message_p\d\d/g)?.every((name, _, all) => name === all[0])).toBe(true);
    expect(plans.owed).toMatch(/Index Scan using message_p\d\d_ts_idx/);
    expect(plans.turn).toContain('turn_queued');
  });

  test('a migration that was changed after it was applied is refused', async () => {
    const first = `migration_name = '0001_tables'`;
    const set = (checksum: string) =>
      withClient((client) => client.query(`update _prisma_migrations set checksum = $1 where ${first}`, [checksum]));
    const { rows } = await withClient((client) => client.query(`select checksum from _prisma_migrations where ${first}`));
    await set('0'.repeat(64));
    await expect(migrate(database.url)).rejects.toThrow('migration 0001_tables was changed after it was applied');
    await set(rows[0].checksum);
    expect(await migrate(database.url)).toEqual([]);
  });

  test('a migration that fails leaves nothing of itself', async () => {
    await withClient((client) => client.query('delete from _prisma_migrations'));
    // Its tables stand already, so its first statement fails.
    await expect(migrate(database.url)).rejects.toThrow(/0001_tables/);
  }, 30_000);
});
