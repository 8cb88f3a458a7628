import { connect, createServer, type Socket } from 'node:net';
import type { Cluster } from './cluster.js';

/** An address where agents find whichever edge is there. */
export interface Balancer {
  readonly port: number;
  close(): Promise<void>;
}

/** As a load balancer does it: each new connection goes to the first edge that is alive. */
export async function balancer(cluster: Pick<Cluster, 'edges'>): Promise<Balancer> {
  const sockets = new Set<Socket>();
  const server = createServer((from) => {
    const edge = cluster.edges.find(({ alive }) => alive);
    if (edge === undefined) return void from.destroy();
    const to = connect(Number(new URL(edge.url).port), '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
