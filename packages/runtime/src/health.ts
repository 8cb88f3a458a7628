import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from './clock.js';

/** Says whether one dependency works now. Throwing is the same as `false`. */
export type HealthCheck = () => boolean | Promise<boolean>;

export interface Health {
  readonly port: number;
  /** Whether work may be sent here. Starts `false`; a part that drains sets it back. */
  setReady(ready: boolean): void;
  /** A dependency that readiness hangs on. Returns a function that takes it away. */
  check(name: string, run: HealthCheck): () => void;
  close(): Promise<void>;
}

/** A check that has not answered by then has failed; shorter than the time a load balancer waits. */
const check_ms = 2_000;

/**
 * `GET /healthz`: 200 while the event loop turns, whatever the dependencies do, since a restart would not mend those.
 * `GET /readyz`: 200 or 503, with each check's state as JSON. `GET /metrics`: what {@link options.metrics} gives.
 * @param options.port 0 takes a free one
 */
export async function serveHealth(options: { host: string; port: number; clock: Clock; metrics?: () => Promise<string> }): Promise<Health> {
  const { clock, metrics } = options;
  const checks = new Map<string, HealthCheck>();
  let ready = false;

  const within = (run: HealthCheck): Promise<boolean> =>
    new Promise((resolve) => {
      const timer = clock.after(check_ms, () => resolve(false));
      void (async () => run())()
        .catch(() => false)
        .then((ok) => {
          timer.cancel();
          resolve(ok);
        });
    });
  const readiness = async (response: ServerResponse) => {
    const states = await Promise.all([...checks].map(async ([name, run]) => [name, await within(run)] as const));
    const ok = ready && states.every(([, state]) => state);
    answer(
      response,
      ok ? 200 : 503,
      'application/json',
      `${JSON.stringify({ ready: ok, started: ready, checks: Object.fromEntries(states) })}\n`,
    );
  };
  const handle = async (path: string, response: ServerResponse): Promise<void> => {
    if (path === '/healthz') return answer(response, 200, 'text/plain', 'ok\n');
    if (path === '/readyz') return readiness(response);
    if (path === '/metrics' && metrics !== undefined)
      return answer(response, 200, 'text/plain; version=0.0.4; charset=utf-8', await metrics());
    answer(response, 404, 'text/plain', 'not found\n');
  };
  const server = createServer((request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(response, 405, 'text/plain', 'only GET\n');
    const path = (request.url ?? '/').split('?', 1)[0]!;
    handle(path, response).catch((error: unknown) => answer(response, 500, 'text/plain', `${(error as Error).message}\n`));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });

  return {
    port: (server.address() as AddressInfo).port,
    setReady(next) {
      ready = next;
    },
    check(name, run) {
      checks.set(name, run);
      return () => void checks.delete(name);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(body);
}
