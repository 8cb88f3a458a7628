import { createConnection, createServer } from 'node:net';
import { type Clock, systemClock } from '@iris/runtime';

/** Everything that devstack starts listens here and nowhere else. */
export const loopback = '127.0.0.1';

/** Whether nothing listens on the port of the loopback address now. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: loopback, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

/** A port that is free now; the operating system does not give the same one again soon. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ port: 0, host: loopback }, () => {
      const address = probe.address();
      probe.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
}

/** `wanted` when it is free and not in `taken`, else any free port. The port is added to `taken`. */
export async function portNear(wanted: number, taken: Set<number>): Promise<number> {
  let port = wanted;
  while (taken.has(port) || port > 65_535 || !(await isFree(port))) port = await freePort();
  taken.add(port);
  return port;
}

/**
 * Talk to a port once: send `hello` (when given) and resolve with the first bytes that come back.
 * @throws when nothing answers within `timeout_ms`
 */
export function askPort(port: number, hello: string | undefined, timeout_ms: number, clock: Clock = systemClock): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: loopback });
    const timer = clock.after(timeout_ms, () => end(new Error(`no answer on port ${port}`)));
    const end = (outcome: string | Error) => {
      timer.cancel();
      socket.destroy();
      if (typeof outcome === 'string') resolve(outcome);
      else reject(outcome);
    };
    socket.once('connect', () => hello !== undefined && socket.write(hello));
    socket.once('data', (data) => end(data.toString('latin1')));
    socket.once('error', end);
    socket.once('close', () => end(new Error(`port ${port} closed`)));
  });
}
