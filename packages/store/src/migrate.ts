import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Log, silentLog, systemClock } from '@iris/runtime';
import pg from 'pg';
import { appliedBeside } from './beside.js';
import { refold } from './refold.js';

/** Of this package: the same from `src` and from `dist`. */
const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const migrations = join(folder, 'prisma', 'migrations');

/** Of our own lock, beside Prisma's: many parts may start at once, and all but one then find everything done. */
const lockKey = 4_748_717_301;
const lockRetry_ms = 100;
const connect_ms = 10_000;

interface Migration {
  readonly name: string;
  /** SHA-256 of the file, hex: what Prisma writes beside an applied one. */
  readonly checksum: string;
  readonly sql: string;
}

interface Applied {
  readonly migration_name: string;
  readonly checksum: string;
}

/**
 * Bring the database to this version's tables, and make it when it is not there. What is done already costs a look.
 * Runs `prisma migrate deploy` with the schema engine of this package, so nothing is downloaded.
 * @returns names of the migrations that were applied by this call
 * @throws when a migration fails, or one that was applied has been changed since
 */
export async function migrate(databaseUrl: string, log: Log = silentLog): Promise<string[]> {
  const client = await connect(databaseUrl).catch(async (error: unknown) => {
    if (codeOf(error) !== noSuchDatabase) throw error;
    await makeDatabase(databaseUrl);
    return connect(databaseUrl);
  });
  try {
    await lock(client);
    if (!(await isOwner(client))) {
      log.info('store.not_the_owner', { hint: 'whoever owns the tables migrates them' });
      return [];
    }
    const missing = await outstanding(client);
    if (missing.length > 0) {
      const done = await appliedBeside(client, missing);
      if (done < missing.length) await deploy(databaseUrl);
      await client.query('SELECT iris_guard_tables()');
    }
    const folded = await refold(client);
    if (folded > 0) log.info('store.messages_folded', { count: folded });
    return missing.length > 0 ? announce(missing, log) : [];
  } finally {
    await client.end().catch(() => {});
  }
}

/** Asked for again and again: whoever waited within the server would hold up the building of an index beside the writers, which waits for all. */
async function lock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ got: boolean }>('SELECT pg_try_advisory_lock($1) AS got', [lockKey]);
    if (rows[0]?.got === true) return;
    await new Promise<void>((resolve) => void systemClock.after(lockRetry_ms, resolve));
  }
}

const noSuchDatabase = '3D000';
/** Someone else made it at the same time; Postgres has two words for that. */
const databaseStands = new Set(['42P04', '23505']);

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code);

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: connect_ms, application_name: 'iris migrate' });
  // A connection that dies says so to the next query as well.
  client.on('error', () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

async function makeDatabase(url: string): Promise<void> {
  const address = new URL(url);
  const name = decodeURIComponent(address.pathname.slice(1));
  address.pathname = '/postgres';
  const client = await connect(address.href);
  try {
    await client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`);
  } catch (error) {
    if (!databaseStands.has(codeOf(error))) throw error;
  } finally {
    await client.end();
  }
}

function announce(applied: readonly Migration[], log: Log): string[] {
  const names = applied.map(({ name }) => name);
  log.info('store.migrated', { migrations: names });
  return names;
}

/** The migrations of this version, in order. */
const wanted = (): Migration[] =>
  readdirSync(migrations, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
    .map((name) => {
      const sql = readFileSync(join(migrations, name, 'migration.sql'), 'utf8');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    });

/** A login that may only do what the services do: the tables stand, and are somebody else's. */
async function isOwner(client: pg.Client): Promise<boolean> {
  const text = `SELECT coalesce(has_table_privilege(to_regclass('_prisma_migrations'), 'INSERT'), true) AS yes`;
  return (await client.query<{ yes: boolean }>(text)).rows[0]?.yes === true;
}

async function outstanding(client: pg.Client): Promise<Migration[]> {
  const { rows: tables } = await client.query<{ there: boolean }>(`SELECT to_regclass('_prisma_migrations') IS NOT NULL AS there`);
  if (tables[0]?.there !== true) return wanted();
  const { rows } = await client.query<Applied>(
    'SELECT migration_name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  );
  const applied = new Map(rows.map((row) => [row.migration_name, row.checksum]));
  const all = wanted();
  for (const { name, checksum } of all) {
    if (applied.has(name) && applied.get(name) !== checksum) {
      throw new Error(`migration ${name} was changed after it was applied to this database`);
    }
  }
  return all.filter(({ name }) => !applied.has(name));
}

/** The variables that make the Prisma command line use our schema engine, and leave the network alone. */
const environment = (databaseUrl: string): NodeJS.ProcessEnv => ({
  ...process.env,
  // The engine is a script that names `node`: let it be this one.
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  DATABASE_URL: databaseUrl,
  PRISMA_SCHEMA_ENGINE_BINARY: join(folder, 'bin', 'schema-engine.mjs'),
  PRISMA_HIDE_UPDATE_MESSAGE: '1',
  CHECKPOINT_DISABLE: '1',
});

async function deploy(databaseUrl: string): Promise<void> {
  const cli = createRequire(import.meta.url).resolve('prisma/build/index.js');
  const child = spawn(process.execPath, [cli, 'migrate', 'deploy'], {
    cwd: folder,
    env: environment(databaseUrl),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0) throw new Error(`prisma migrate deploy failed:\n${Buffer.concat(output).toString('utf8').trim()}`);
}
