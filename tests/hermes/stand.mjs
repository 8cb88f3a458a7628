/** What a way of attaching is tried on: a real gateway, a device, and an address where agents find whichever edge is there. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';

/** As a load balancer does it: each new connection goes to the first edge that is alive. */
export async function balancer(cluster) {
  const sockets = new Set();
  const server = createServer((from) => {
    const edge = cluster.edges.find(({ alive }) => alive);
    if (edge === undefined) return void from.destroy();
    const to = connect(Number(new URL(edge.url).port), '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ]) {
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
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A Node program that is there until it is stopped. */
export function startProgram(main, args, { env = {}, log_file }) {
  const out = openSync(log_file, 'a');
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', out, out], env: { PATH: process.env.PATH, ...env } });
  closeSync(out);
  const gone = new Promise((resolve) => child.once('exit', resolve));
  return {
    log: () => readFileSync(log_file, 'utf8'),
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
      await gone;
      clearTimeout(timer);
    },
  };
}
