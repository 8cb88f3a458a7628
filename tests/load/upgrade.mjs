/**
 * How long writers are held up while an old database with many messages is brought to the tables of migration 0003: as Prisma runs it, in one
 * transaction, and as migrate() does it, beside the writers. Needs built packages and Postgres (the embedded one will do).
 *
 *   node tests/load/upgrade.mjs [--messages 500000]
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { choosePostgres, startPostgres } from '@iris/devstack';
import pg from 'pg';
import { appliedBeside } from '../../packages/store/dist/beside.js';

const { values } = parseArgs({ options: { messages: { type: 'string', default: '500000' } } });
const migrations = new URL('../../packages/store/prisma/migrations/', import.meta.url);
const sqlOf = (name) => readFileSync(new URL(`${name}/migration.sql`, migrations), 'utf8');
const dir = mkdtempSync(join(tmpdir(), 'iris-upgrade-'));
const data = join(dir, 'data');
const server = await startPostgres({ programs: await choosePostgres(data), data, run_dir: dir, password: 'test', durable: false });

async function measure(name, upgrade) {
  const address = new URL(server.url);
  address.pathname = `/${name}`;
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  await admin.query(`create database ${name}`);
  await admin.end();
  const [client, writer] = [new pg.Client({ connectionString: address.href }), new pg.Client({ connectionString: address.href })];
  await Promise.all([client.connect(), writer.connect()]);
  await client.query(`create table _prisma_migrations (id varchar(36) primary key, checksum varchar(64) not null, finished_at timestamptz,
    migration_name varchar(255) not null, logs text, rolled_back_at timestamptz, started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`);
  for (const before of ['0001_tables', '0002_own_ids']) await client.query(sqlOf(before));
  await client.query(`insert into tenant (tenant_id, name, created_at) select 'tn' || n, 'T', 1 from generate_series(0, 99) n`);
  await client.query(`insert into channel (tenant_id, chat_id, kind, name, is_default, auto, created_at, number)
    select 'tn' || n, 'android:default', 'default', 'Default', true, false, 1, 0 from generate_series(0, 99) n`);
  const insert = `insert into message (tenant_id, message_id, chat_id, thread_id, role, text, search_text, ts, cursor)
    select 'tn' || abs(n) % 100, 'm_' || n, 'android:default', '', 'user', repeat('words of a message ', 15), '', n, n from generate_series($1::int, $2::int) n`;
  await client.query(insert, [1, Number(values.messages)]);
  await client.query('vacuum analyze message');

  let over = false;
  const waits = [];
  const writing = (async () => {
    for (let n = 1; !over; n++) {
      const begun = performance.now();
      await writer.query(insert, [-n, -n]);
      waits.push(performance.now() - begun);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  const begun = performance.now();
  await upgrade(client);
  const took = performance.now() - begun;
  over = true;
  await writing;
  console.log(
    `${name}: took ${Math.round(took)} ms; ${waits.length} writes meanwhile, the longest waited ${Math.round(Math.max(...waits))} ms`,
  );
  await Promise.all([client.end(), writer.end()]);
}

try {
  await measure('in_one', (client) => client.query(`begin; ${sqlOf('0003_search')}; commit`));
  const sql = sqlOf('0003_search');
  const checksum = createHash('sha256').update(sql).digest('hex');
  await measure('beside', (client) => appliedBeside(client, [{ name: '0003_search', checksum, sql }]));
} finally {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}
