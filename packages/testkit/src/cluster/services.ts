import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { choosePostgres, findProgram, freePort, type Server, startNats, startPostgres, startRedis } from '@iris/devstack';
import { freezeProcess } from './freeze.js';

/** A folder of this test's own, for logs and data. */
export interface Workspace {
  readonly dir: string;
  /** Things to undo, the last first. */
  defer(undo: () => Promise<unknown> | unknown): void;
  close(): Promise<void>;
}

export function workspace(): Workspace {
  const dir = mkdtempSync(join(tmpdir(), 'iris-test-'));
  // Postgres runs as a user of its own and must get through.
  chmodSync(dir, 0o755);
  const undone: (() => Promise<unknown> | unknown)[] = [];
  return {
    dir,
    defer: (undo) => void undone.push(undo),
    async close() {
      for (let undo = undone.pop(); undo !== undefined; undo = undone.pop()) await undo();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * URL of a fresh, empty database: on the run's server (`IRIS_TEST_POSTGRES_URL`), or on one that is started for this test. The name is
 * new each time; it is made by the first that migrates.
 */
export async function freshDatabase(space: Workspace): Promise<string> {
  const url = new URL(process.env.IRIS_TEST_POSTGRES_URL ?? (await ownPostgres(space)));
  url.pathname = `/iris_test_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
  return url.href;
}

async function ownPostgres(space: Workspace): Promise<string> {
  const data = join(space.dir, 'postgres', 'data');
  const programs = await choosePostgres(data);
  const server = await startPostgres({ programs, data, run_dir: join(space.dir, 'run'), password: randomUUID(), durable: false });
  space.defer(() => server.stop());
  return server.url;
}

/** A server that a test may kill, freeze and start anew, on the same port. */
export interface OwnServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  freeze(): void;
  thaw(): void;
  /** After {@link kill}: on the same port, with nothing in it. */
  start(): Promise<void>;
}

/** A Redis of this test's own, without persistence: started again it is empty. */
export function ownRedis(space: Workspace): Promise<OwnServer> {
  const program = need('redis-server');
  return ownServer(space, (port) =>
    startRedis({ program, port, data: join(space.dir, `redis-${port}`), run_dir: join(space.dir, 'run', `redis-${port}`), keep: false }),
  );
}

export function ownNats(space: Workspace): Promise<OwnServer> {
  const program = need('nats-server');
  return ownServer(space, (port) => startNats({ program, port, run_dir: join(space.dir, 'run', `nats-${port}`) }));
}

async function ownServer(space: Workspace, launch: (port: number) => Promise<Server>): Promise<OwnServer> {
  const port = await freePort();
  let server = await launch(port);
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(server.pid, name);
    } catch {
      // Gone already.
    }
  };
  space.defer(async () => {
    signal('SIGCONT');
    await server.stop();
  });
  return {
    url: server.url,
    port,
    get pid() {
      return server.pid;
    },
    async kill() {
      signal('SIGKILL');
      await server.ended;
    },
    freeze: () => freezeProcess(server.pid),
    thaw: () => signal('SIGCONT'),
    async start() {
      server = await launch(port);
    },
  };
}

function need(program: string): string {
  const path = findProgram(program);
  if (path === undefined) throw new Error(`${program} is not on this machine; npm test installs it, or says how`);
  return path;
}
