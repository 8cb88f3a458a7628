import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
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

/**
 * A server to be killed, frozen and started again; its data stays.
 * @param copyOf the data of another one, which is stopped: begins with all that is in it
 */
export async function restartablePostgres(copyOf?: string): Promise<Restartable & { readonly data: string }> {
  const found = await programs();
  let data = '';
  const server = await restartable('postgres', (run_dir, port) => {
    data = join(run_dir, 'data');
    // With its owner, who is not us when we are root.
    if (copyOf !== undefined && !existsSync(data)) {
      chmodSync(run_dir, 0o755);
      execFileSync('cp', ['-a', copyOf, data]);
    }
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
    data,
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

/** An address that leads to one server after another: connections that stand stay where they are. */
export async function movingAddress(first: string): Promise<{ readonly url: string; leadTo(url: string): void; end(): Promise<void> }> {
  const sockets = new Set<Socket>();
  let port = Number(new URL(first).port);
  const server = createServer((from) => {
    const to = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(first);
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    leadTo(next) {
      port = Number(new URL(next).port);
    },
    end() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
