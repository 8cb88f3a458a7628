/**
 * Thousands of sockets of strangers on one edge: some say nothing, some drip their first frame byte by byte, some send 5 MB first, some come to the relay's
 * door with tokens that they have made up and signed. All must be closed
 * within 10 s of coming, give back descriptors and memory, and a user who has said hello must notice nothing. Needs a build, redis-server and
 * nats-server.
 *
 *   node tests/load/strangers.mjs [--sockets 5000] [--large 1666] [--relays 500]
 *
 * Of them `--large` send 5 MB: what those cost is what they may make an edge hold, 8 MiB each (decision 7), and the client has to send it all.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { parseArgs } from 'node:util';
import { makeToken } from '@iris/protocol';
import { cluster } from '@iris/testkit';

const { values } = parseArgs({
  options: {
    sockets: { type: 'string', default: '5000' },
    large: { type: 'string', default: '1666' },
    relays: { type: 'string', default: '500' },
  },
});
const [count, largeOnes, relays] = [Number(values.sockets), Number(values.large), Number(values.relays)];

const system = await cluster({ edges: 1, sessions: 1 });
const [edge] = system.edges;
const port = Number(new URL(edge.url).port);
const descriptors = () => readdirSync(`/proc/${edge.pid}/fd`).length;
const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${edge.pid}/status`, 'utf8'))[1]) / 1024;
const tenant = await system.tenant();
const user = await tenant.join('user');

const header = (size) => {
  const head = Buffer.alloc(14);
  head.writeUInt8(0x81, 0);
  head.writeUInt8(0x80 | 127, 1);
  head.writeBigUInt64BE(BigInt(size), 2);
  return head;
};
const large = Buffer.concat([header(5_000_000), Buffer.alloc(5_000_000, 0x78)]);
const drip = Buffer.concat([header(60_000), Buffer.alloc(60_000, 0x78)]);
const kinds = ['silent', 'dripping', '5 MB first', 'at the relay'];
/** As a relay signs it: with the token itself. */
const bearer = (token) => Buffer.from(`${token}:0:${createHmac('sha256', token).update(`${token}:0`).digest('hex')}`).toString('base64url');

function stranger(n) {
  const kind = n >= count - relays ? 'at the relay' : n % 3 === 2 && n / 3 < largeOnes ? '5 MB first' : n % 2 ? 'silent' : 'dripping';
  const address = `127.${1 + (n >> 12)}.${(n >> 6) & 63}.${1 + (n & 63)}`;
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address });
    const came = performance.now();
    let timer;
    let at = 0;
    const path = kind === 'at the relay' ? '/relay' : '/ws';
    const head =
      kind === 'at the relay'
        ? `Authorization: Bearer ${bearer(makeToken('agent', tenant.tenant_id, `guess${n}`.padEnd(32, 'x')))}\r\n`
        : '';
    socket.on('connect', () =>
      socket.write(
        `GET ${path} HTTP/1.1\r\n${head}Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      ),
    );
    socket.once('data', () => {
      if (kind === '5 MB first') socket.write(large);
      if (kind === 'dripping')
        timer = setInterval(() => {
          socket.write(drip.subarray(at, at + 10));
          at += 10;
        }, 200);
      socket.on('data', () => {});
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearInterval(timer);
      resolve({ kind, ms: performance.now() - came });
    });
    // A server that has closed still has to be told goodbye by most; these do not.
    socket.on('end', () => socket.destroy());
  });
}

const before = { descriptors: descriptors(), memory: memory() };
const pings = [];
let watching = true;
const watch = (async () => {
  while (watching) {
    const asked = performance.now();
    await user.request('ping', { ts: 1 });
    pings.push(performance.now() - asked);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
})();
const begun = performance.now();
const all = [];
for (let n = 0; n < count; n++) {
  all.push(stranger(n));
  if (n % 100 === 99) await new Promise((resolve) => setTimeout(resolve, 20));
}
const came_ms = performance.now() - begun;
let most = { descriptors: 0, memory: 0 };
const sampler = setInterval(() => {
  most = { descriptors: Math.max(most.descriptors, descriptors()), memory: Math.max(most.memory, memory()) };
}, 200);
const gone = await Promise.all(all);
clearInterval(sampler);
const closed = performance.now();
while (descriptors() > before.descriptors + 5 && performance.now() - closed < 15_000)
  await new Promise((resolve) => setTimeout(resolve, 100));
const back_ms = performance.now() - closed;
await new Promise((resolve) => setTimeout(resolve, 3_000));
watching = false;
await watch;

console.log(`${count} sockets came in ${(came_ms / 1000).toFixed(1)} s`);
for (const kind of kinds) {
  const times = gone
    .filter((one) => one.kind === kind)
    .map(({ ms }) => ms)
    .sort((a, b) => a - b);
  console.log(`${kind}: ${times.length}, closed after ${(times[0] / 1000).toFixed(1)} to ${(times.at(-1) / 1000).toFixed(1)} s`);
}
console.log(
  `descriptors ${before.descriptors}, at most ${most.descriptors}, ${(back_ms / 1000).toFixed(1)} s after the last close ${descriptors()}`,
);
console.log(`memory ${before.memory.toFixed(0)} MiB, at most ${most.memory.toFixed(0)}, afterwards ${memory().toFixed(0)}`);
pings.sort((a, b) => a - b);
console.log(
  `the user's ping: median ${pings[pings.length >> 1].toFixed(0)} ms, worst ${pings.at(-1).toFixed(0)} ms, still connected: ${user.connected}`,
);
user.close();
await system.close();
process.exit(0);
