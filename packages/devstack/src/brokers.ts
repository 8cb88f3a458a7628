import { mkdirSync } from 'node:fs';
import type { Clock } from '@iris/runtime';
import { askPort, freePort, loopback } from './ports.js';
import { type Server, startServer } from './server.js';

export interface BrokerOptions {
  readonly program: string;
  readonly run_dir: string;
  /** Default: a free one. */
  readonly port?: number;
  readonly clock?: Clock;
}

/**
 * A Redis server that keeps its data in `data`, an append-only file synced once a second, and never evicts: what it holds
 * is not a cache. With `keep: false` nothing is written; with `'at once'` whatever it has answered is on the disk, where beside a slow disk a
 * kill costs up to 2 s of it else.
 */
export async function startRedis(options: BrokerOptions & { readonly data: string; readonly keep?: boolean | 'at once' }): Promise<Server> {
  const port = options.port ?? (await freePort());
  mkdirSync(options.data, { recursive: true });
  const { keep } = options;
  const synced = keep === 'at once' ? 'always' : 'everysec';
  const appending = keep === false ? ['--appendonly', 'no'] : ['--appendonly', 'yes', '--appendfsync', synced];
  return startServer({
    ...options,
    name: 'redis',
    args: [
      ...['--port', String(port), '--bind', loopback, '--dir', options.data, '--daemonize', 'no', '--save', ''],
      ...appending,
      ...['--maxmemory-policy', 'noeviction'],
    ],
    port,
    url: `redis://${loopback}:${port}`,
    stop_signal: 'SIGTERM',
    stop_ms: 10_000,
    ready_ms: 30_000,
    ready: async () => (await askPort(port, 'PING\r\n', 1_000, options.clock)).startsWith('+PONG'),
  });
}

/**
 * A NATS server without persistence: the bus is at-most-once.
 * @param options.node of a cluster: the port on which its nodes find it, and those of the others
 */
export async function startNats(
  options: BrokerOptions & { readonly node?: { readonly port: number; readonly others: readonly number[] } },
): Promise<Server> {
  const port = options.port ?? (await freePort());
  return startServer({
    ...options,
    name: 'nats',
    args: ['--addr', loopback, '--port', String(port), ...nodeArgs(options.node)],
    port,
    url: `nats://${loopback}:${port}`,
    stop_signal: 'SIGTERM',
    stop_ms: 5_000,
    ready_ms: 10_000,
    ready: async () => (await askPort(port, undefined, 1_000, options.clock)).startsWith('INFO'),
  });
}

const nodeArgs = (node: { readonly port: number; readonly others: readonly number[] } | undefined): string[] => {
  if (node === undefined) return [];
  const routes = node.others.map((port) => `nats://${loopback}:${port}`).join(',');
  return ['--cluster_name', 'iris', '--cluster', `nats://${loopback}:${node.port}`, '--routes', routes];
};
