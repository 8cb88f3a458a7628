import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { embeddedPostgres, installedPostgres, type PostgresPrograms, startPostgres } from '@iris/devstack';
import { freezeProcess } from '@iris/testkit';
import pg from 'pg';
import { type Restartable, restartable } from './servers.js';

async function programs(): Promise<PostgresPrograms> {
  const found = (await embeddedPostgres()) ?? installedPostgres();
  if (found === undefined)
    throw new Error('these tests need Postgres: install it, or set IRIS_TEST_POSTGRES_URL to one that may be written to');
  return found;
}

/** A server to be killed, frozen and started again; its data stays. */
export async function restartablePostgres(): Promise<Restartable> {
  const found = await programs();
  let data = '';
  const server = await restartable('postgres', (run_dir, port) => {
    data = join(run_dir, 'data');
    return startPostgres({ programs: found, run_dir, data, password: 'test', port, durable: false });
  });
  /** Each connection is a process of its own, below the first. */
  const each = (act: (pid: number) => void): void => {
    const first = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n', 1)[0];
    const others = readFileSync(`/proc/${first}/task/${first}/children`, 'utf8').trim().split(' ');
    for (const pid of [first, ...others]) act(Number(pid));
  };
  return {
    ...server,
    /** All of them: one whose first process is gone may answer once more before it sees that. */
    async kill() {
      each((pid) => void process.kill(pid, 'SIGKILL'));
      await server.kill();
    },
    freeze: () => each(freezeProcess),
    thaw: () => each((pid) => void process.kill(pid, 'SIGCONT')),
  };
}

/** An empty database of the test's own, on the server the environment names or on one of ours; `end` removes it. */
export async function databaseForTests(): Promise<{ url: string; end(): Promise<void> }> {
  const given = process.env.IRIS_TEST_POSTGRES_URL;
  const server = given ? { url: given, end: async () => {} } : await restartablePostgres();
  const name = `iris_test_${randomUUID().replaceAll('-', '')}`;
  const run = async (sql: string): Promise<void> => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  await run(`CREATE DATABASE ${name}`);
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async end() {
      await run(`DROP DATABASE ${name} WITH (FORCE)`);
      await server.end();
    },
  };
}
