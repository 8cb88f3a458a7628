/**
 * What batching appends is worth: 64 frames in one call of the script against 64 calls of one frame, pipelined, and against one call
 * after another. Needs built packages and redis-server, or IRIS_TEST_REDIS_URL.
 *
 *   node tests/load/outbox-append.mjs [--seconds 2] [--rounds 5] [--bare]
 *
 * The variants take turns, so that what else the machine does hits all alike; the figures are medians of the rounds.
 * `--bare`: frames without idempotency key and message id.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findProgram, startRedis } from '@iris/devstack';
import { redisOutbox } from '@iris/outbox';
import { Redis } from 'ioredis';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    bare: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);

const given = process.env.IRIS_TEST_REDIS_URL;
const dir = mkdtempSync(join(tmpdir(), 'iris-append-'));
const program = findProgram('redis-server');
if (!given && !program) throw new Error('needs redis-server, or IRIS_TEST_REDIS_URL');
const server = given ? undefined : await startRedis({ program, run_dir: dir, data: join(dir, 'data'), keep: false });
const url = given ?? server.url;
const outbox = await redisOutbox({ url });
const redis = new Redis(url);

const body = new Uint8Array(300).fill(0x61);
let made = 0;
const frame = () => {
  made++;
  const bare = { body, type: 'message', push: false };
  return values.bare
    ? bare
    : { ...bare, key: `connection-0123456789abcdef:${made}`, message_ids: [`message-${made}`], lane: 'android:default' };
};
const batch = (tenant_id, count) => ({ tenant_id, frames: Array.from({ length: count }, frame), max_frames: 100_000 });
const variants = {
  'one at a time': { per_trip: 1, trip: (tenant_id) => [batch(tenant_id, 1)] },
  '64 calls of one, pipelined': { per_trip: 64, trip: (tenant_id) => Array.from({ length: 64 }, () => batch(tenant_id, 1)) },
  'one call of 64': { per_trip: 64, trip: (tenant_id) => [batch(tenant_id, 64)] },
};

const redisCpu = async () => {
  const info = await redis.info('cpu');
  const of = (name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)[1]);
  return (of('used_cpu_user') + of('used_cpu_sys')) * 1e6;
};

async function measure(tenant_id, { per_trip, trip }) {
  const cpu = await redisCpu();
  const own = process.cpuUsage();
  const began = process.hrtime.bigint();
  const until = began + BigInt(seconds * 1e9);
  let trips = 0;
  while (process.hrtime.bigint() < until) {
    for (const result of await outbox.append(trip(tenant_id))) if (result.refused) throw new Error(result.refused);
    trips++;
  }
  const took = Number(process.hrtime.bigint() - began) / 1e9;
  const { user, system } = process.cpuUsage(own);
  const appends = trips * per_trip;
  return { per_second: appends / took, redis_us: ((await redisCpu()) - cpu) / appends, client_us: (user + system) / appends };
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
try {
  const found = Object.fromEntries(Object.keys(variants).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [name, variant] of Object.entries(variants)) {
      const tenant_id = `bench-${process.pid}-${round}-${variant.per_trip}-${Object.keys(variants).indexOf(name)}`;
      await outbox.seed(tenant_id, 0, Number.MAX_SAFE_INTEGER);
      const result = await measure(tenant_id, variant);
      await outbox.drop(tenant_id);
      // The first round warms up.
      if (round > 0) found[name].push(result);
    }
  }
  console.log(
    `${'variant'.padEnd(28)}appends/s   Redis us   client us   (medians of ${rounds} × ${seconds} s, 300-byte bodies${values.bare ? ', bare' : ''})`,
  );
  const figure = (name, field) => median(found[name].map((result) => result[field]));
  for (const name of Object.keys(variants)) {
    console.log(
      `${name.padEnd(28)}${figure(name, 'per_second').toFixed(0).padStart(9)}${figure(name, 'redis_us').toFixed(1).padStart(11)}${figure(name, 'client_us').toFixed(1).padStart(12)}`,
    );
  }
  const [, single, packed] = Object.keys(variants);
  console.log(
    `one call of 64 against 64 pipelined calls: ${(figure(packed, 'per_second') / figure(single, 'per_second')).toFixed(2)} times the appends/s`,
  );
} finally {
  await outbox.close();
  redis.disconnect();
  await server?.stop();
  rmSync(dir, { recursive: true, force: true });
}
