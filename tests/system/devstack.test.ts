/** The servers of devstack, really started: what `npm start -- --cluster` and the other system tests stand on. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  askPort,
  choosePostgres,
  embeddedPostgres,
  endLeftovers,
  findProgram,
  isAlive,
  planServices,
  type Server,
  startNats,
  startPostgres,
  startRedis,
  supervise,
  takeDataFolder,
} from '@iris/devstack';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import pg from 'pg';

jest.setTimeout(60_000);
let dir: string;
const running: { stop(): Promise<void> }[] = [];
const keep = <T extends { stop(): Promise<void> }>(one: T): T => {
  running.push(one);
  return one;
};
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'iris-devstack-'));
});
afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Both kinds of server must do, also below a folder that is closed to everyone but us. */
async function embedded(data = join(dir, 'closed', 'postgres')): Promise<Server> {
  mkdirSync(join(dir, 'closed'), { recursive: true });
  chmodSync(join(dir, 'closed'), 0o700);
  return keep(
    await startPostgres({ programs: (await embeddedPostgres())!, data, run_dir: join(dir, 'run'), password: 'p ä/@', durable: false }),
  );
}

test('the embedded Postgres keeps its data over a stop, and knows letters of every language', async () => {
  const first = await embedded();
  await ask(first.url, 'create table t as select 1 as n');
  expect(await ask(first.url, `select lower('ÄÉΣ') as low, current_setting('server_encoding') as encoding`)).toEqual([
    { low: 'äéσ', encoding: 'UTF8' },
  ]);
  await first.stop();
  expect(isAlive(first.pid)).toBe(false);
  expect(await ask((await embedded()).url, 'select n from t')).toEqual([{ n: 1 }]);
});

test('after a kill -9 the next start on the same data takes over', async () => {
  const first = await embedded();
  await ask(first.url, 'create table t as select 1 as n');
  first.kill('SIGKILL');
  await first.ended;
  expect(await ask((await embedded()).url, 'select n from t')).toEqual([{ n: 1 }]);
});

test('a start on data whose server still runs ends that one first', async () => {
  const first = await embedded();
  const second = await embedded();
  await first.ended;
  expect(await ask(second.url, 'select 1 as n')).toEqual([{ n: 1 }]);
});

test('data of another major version are refused with what to do', async () => {
  const data = join(dir, 'postgres');
  mkdirSync(data);
  writeFileSync(join(data, 'PG_VERSION'), '9\n');
  await expect(choosePostgres(data)).rejects.toThrow('of Postgres 9, which is not here: forget them with --fresh');
});

test('Redis keeps what was written, a start without keeping is empty; NATS answers', async () => {
  const program = findProgram('redis-server')!;
  const start = async (keep_: boolean) =>
    keep(await startRedis({ program, data: join(dir, 'redis'), run_dir: join(dir, 'run'), keep: keep_ }));
  const first = await start(true);
  expect(await askPort(first.port, 'SET a 1\r\n', 5_000)).toBe('+OK\r\n');
  expect(await askPort(first.port, 'CONFIG GET maxmemory-policy\r\n', 5_000)).toContain('noeviction');
  await first.stop();
  const second = await start(true);
  expect(await askPort(second.port, 'GET a\r\n', 5_000)).toBe('$1\r\n1\r\n');
  await second.stop();
  const third = await start(false);
  expect(await askPort(third.port, 'GET a\r\n', 5_000)).toBe('$-1\r\n');
  const nats = keep(await startNats({ program: findProgram('nats-server')!, run_dir: join(dir, 'run') }));
  expect(await askPort(nats.port, undefined, 5_000)).toContain('"server_id"');
});

test('a server that cannot start says why', async () => {
  const program = findProgram('redis-server')!;
  const first = keep(await startRedis({ program, data: join(dir, 'redis'), run_dir: join(dir, 'run') }));
  await expect(startRedis({ program, data: join(dir, 'other'), run_dir: join(dir, 'run2'), port: first.port })).rejects.toThrow(
    `port ${first.port} is taken`,
  );
});

test('servers end with a starter that is killed', async () => {
  const devstack = fileURLToPath(new URL('../../packages/devstack/dist/index.js', import.meta.url));
  const script = `
    const d = await import(${JSON.stringify(devstack)});
    const run_dir = ${JSON.stringify(join(dir, 'run'))};
    const redis = await d.startRedis({ program: d.findProgram('redis-server'), data: ${JSON.stringify(join(dir, 'redis'))}, run_dir });
    const postgres = await d.startPostgres({ programs: await d.embeddedPostgres(), data: ${JSON.stringify(join(dir, 'pg'))}, run_dir, password: 'p' });
    console.log(JSON.stringify([redis.pid, postgres.pid]));`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(starter.stdout!, 'data')) as [Buffer];
  const pids = JSON.parse(line.toString()) as number[];
  expect(pids.map(isAlive)).toEqual([true, true]);
  starter.kill('SIGKILL');
  await once(starter, 'exit');
  // On Linux the kernel has told them; elsewhere this is what does it.
  await endLeftovers(join(dir, 'run'));
  expect(pids.map(isAlive)).toEqual([false, false]);
});

test('a service that is killed comes back on its address with its data, and the list of processes says so', async () => {
  const folder = await takeDataFolder({ dir: join(dir, 'data'), fresh: false, say: () => {} });
  const plan = await planServices({
    folder,
    names: ['postgres', 'redis', 'nats'],
    given: new Map(),
    install: false,
    durable: false,
    say: () => {},
  });
  let changed = () => {};
  const supervisor = keep(supervise({ restart: true, say: () => {}, changed: () => changed() }));
  await supervisor.start(...plan.parts);
  const url = plan.urls.get('postgres')!;
  await ask(url, 'create table t as select 1 as n');
  const before = supervisor.list();
  expect(before.map(({ part }) => part).sort()).toEqual(['nats', 'postgres', 'redis']);
  const back = new Promise<void>((resolve) => {
    changed = () => supervisor.list().length === 3 && resolve();
  });
  process.kill(before.find(({ part }) => part === 'postgres')!.pid, 'SIGKILL');
  await back;
  expect(await ask(url, 'select n from t')).toEqual([{ n: 1 }]);
  const pids = (list: typeof before) => Object.fromEntries(list.map(({ part, pid }) => [part, pid]));
  expect(pids(supervisor.list())).toMatchObject({ redis: pids(before).redis, nats: pids(before).nats });
  expect(pids(supervisor.list()).postgres).not.toBe(pids(before).postgres);
});

test('services that are given are taken, and nothing is started', async () => {
  const folder = await takeDataFolder({ dir: join(dir, 'data'), fresh: false, say: () => {} });
  const given = new Map([
    ['postgres', 'postgresql://a'],
    ['redis', 'redis://b'],
    ['nats', 'nats://c'],
    ['s3', 'http://d'],
  ] as const);
  const plan = await planServices({ folder, names: ['postgres', 'redis', 'nats', 's3'], given, install: false, say: () => {} });
  expect([plan.parts, plan.notes, plan.urls]).toEqual([[], [], given]);
});
