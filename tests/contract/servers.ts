import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, freePort, type Server, startNats, startRedis } from '@iris/devstack';
import { freezeProcess } from '@iris/testkit';

/** A folder of the test's own, and how to be rid of it. */
export function scratch(name: string): { dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), `iris-${name}-`));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

function programOf(name: string, variable: string): string {
  const program = findProgram(name);
  if (program === undefined) throw new Error(`these tests need ${name}: install it, or set ${variable} to one that may be written to`);
  return program;
}

/** A server to be killed, frozen and started again on the same port. */
export interface Restartable {
  readonly url: string;
  /** SIGKILL, and gone. Its data folder stays. */
  kill(): Promise<void>;
  /** As SIGTERM ends it. */
  stop(): Promise<void>;
  start(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Stop it and remove what it kept. */
  end(): Promise<void>;
}

export async function restartable(name: string, begin: (run_dir: string, port: number) => Promise<Server>): Promise<Restartable> {
  const { dir, remove } = scratch(name);
  const port = await freePort();
  let server: Server | undefined = await begin(dir, port);
  const { url } = server;
  const endWith = async (finish: (server: Server) => Promise<void>) => {
    const old = server;
    server = undefined;
    if (old === undefined) return;
    old.kill('SIGCONT');
    await finish(old);
  };
  return {
    url,
    kill: () =>
      endWith(async (old) => {
        old.kill('SIGKILL');
        await old.ended;
      }),
    stop: () => endWith((old) => old.stop()),
    async start() {
      server = await begin(dir, port);
    },
    freeze: () => server && freezeProcess(server.pid),
    thaw: () => server?.kill('SIGCONT'),
    async end() {
      await endWith((old) => old.stop());
      remove();
    },
  };
}

/** @param keep whether it keeps its data over a restart: all that it has answered, in `data` */
export const restartableRedis = ({ keep }: { keep: boolean }): Promise<Restartable & { readonly data: string }> => {
  const program = programOf('redis-server', 'IRIS_TEST_REDIS_URL');
  let data = '';
  return restartable('redis', (run_dir, port) => {
    data = join(run_dir, 'data');
    return startRedis({ program, run_dir, data, port, keep: keep && 'at once' });
  }).then((server) => ({ ...server, data }));
};

export const restartableNats = (): Promise<Restartable> => {
  const program = programOf('nats-server', 'IRIS_TEST_NATS_URL');
  return restartable('nats', (run_dir, port) => startNats({ program, run_dir, port }));
};

/** So many nodes of one NATS cluster, each to be killed and started again. */
export async function natsNodes(count: number): Promise<Restartable[]> {
  const program = programOf('nats-server', 'IRIS_TEST_NATS_URL');
  const ports: number[] = [];
  for (let n = 0; n < count; n++) ports.push(await freePort());
  return Promise.all(
    ports.map((port, n) => {
      const node = { port, others: ports.filter((_, other) => other !== n) };
      return restartable(`nats-${n}`, (run_dir, own) => startNats({ program, run_dir, port: own, node }));
    }),
  );
}

/** The server the environment names, else one of our own; `end` ends only our own. */
export async function redisForTests(): Promise<{ url: string; end(): Promise<void> }> {
  const given = process.env.IRIS_TEST_REDIS_URL;
  return given ? { url: given, end: async () => {} } : restartableRedis({ keep: false });
}

export async function natsForTests(): Promise<{ url: string; end(): Promise<void> }> {
  const given = process.env.IRIS_TEST_NATS_URL;
  return given ? { url: given, end: async () => {} } : restartableNats();
}
