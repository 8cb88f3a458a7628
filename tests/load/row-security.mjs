/**
 * What the lock between tenants costs in Postgres: the same statements as the services send them, scoped (role and row-level security of
 * migration 0006, the scope in the same trip), and as the tables' owner, bare. Needs built packages and Postgres (the embedded one will do),
 * or IRIS_TEST_POSTGRES_URL.
 *
 *   node tests/load/row-security.mjs [--seconds 2] [--rounds 5] [--at-once 10]
 *
 * The variants take turns, so that what else the machine does hits all alike; the figures are medians of the rounds.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { choosePostgres, startPostgres } from '@iris/devstack';
import { silentLog, systemClock } from '@iris/runtime';
import { migrate, prismaStore } from '@iris/store';
import pg from 'pg';
import { connections } from '../../packages/store/dist/prisma-store/connections.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    'at-once': { type: 'string', default: '10' },
  },
});
const [seconds, rounds, atOnce] = [Number(values.seconds), Number(values.rounds), Number(values['at-once'])];

const dir = mkdtempSync(join(tmpdir(), 'iris-rows-'));
const given = process.env.IRIS_TEST_POSTGRES_URL;
const server = given
  ? undefined
  : await startPostgres({
      programs: await choosePostgres(join(dir, 'data')),
      data: join(dir, 'data'),
      run_dir: dir,
      password: 'test',
      durable: false,
    });
const address = new URL(given ?? server.url);
address.pathname = `/iris_rows_${randomUUID().slice(0, 8)}`;
await migrate(address.href);
const store = prismaStore({ url: address.href });
const tenants = Array.from({ length: 200 }, (_, n) => `tenant${n}`);
for (const tenant_id of tenants) {
  await store.tenants.create({ tenant_id, name: 'T', agent_id: 'agent', at: 1 });
  await store.tokens.create({ tenant_id, token_id: 'tk', kind: 'device', hash: 'h', device_id: null, agent_id: null, created_at: 1 });
}

const scoped = connections({ url: address.href, poolSize: atOnce, clock: systemClock, log: silentLog });
const bare = new pg.Pool({ connectionString: address.href, max: atOnce, options: '-c enable_hashjoin=off -c enable_mergejoin=off' });
const ways = {
  bare: (_, text, given, name) => bare.query({ name, text, values: given }).then(({ rows }) => rows),
  scoped: (of, text, given, name) => scoped.of(of).rows(text, given, name),
};

let made = 0;
const token = 'SELECT * FROM token WHERE tenant_id = $1 AND hash = $2';
const insert = `
INSERT INTO message (tenant_id, message_id, chat_id, role, text, search_text, ts)
SELECT t, $2 || n, 'android:default', 'user', 'hello there', '', 1 FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) RETURNING 1`;
const statements = {
  'one row by its key': (way) => {
    const tenant = tenants[made++ % tenants.length];
    return ways[way]([tenant], token, [tenant, 'h'], 'token');
  },
  'a batch of 50 messages of 50 tenants': (way) => {
    const from = (made++ * 50) % (tenants.length - 50);
    const some = tenants.slice(from, from + 50);
    return ways[way](some, insert, [some, `m_${made}_`], 'insert');
  },
};

const median = (all) => all.sort((a, b) => a - b)[all.length >> 1];
async function measure(run, workers) {
  const until = performance.now() + seconds * 1_000;
  let done = 0;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (performance.now() < until) {
        await run();
        done++;
      }
    }),
  );
  return ((performance.now() - begun) * 1_000) / done;
}

for (const [name, run] of Object.entries(statements))
  for (const workers of [1, atOnce]) {
    const figures = { bare: [], scoped: [] };
    for (const way of Object.keys(figures)) for (let n = 0; n < 200; n++) await run(way);
    for (let round = 0; round < rounds; round++)
      for (const way of round % 2 ? ['scoped', 'bare'] : ['bare', 'scoped']) figures[way].push(await measure(() => run(way), workers));
    const [without, withIt] = [median(figures.bare), median(figures.scoped)];
    const more = `${withIt >= without ? '+' : ''}${((withIt / without - 1) * 100).toFixed(0)} %`;
    console.log(`${name}, ${workers} at once: ${without.toFixed(0)} µs bare, ${withIt.toFixed(0)} µs scoped (${more})`);
  }

await Promise.all([store.close(), scoped.close(), bare.end()]);
await server?.stop();
rmSync(dir, { recursive: true, force: true });
