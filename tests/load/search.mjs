/**
 * Search among a million messages of a hundred tenants in six languages: through the store, against the same SQL sent by hand, against
 * `ILIKE`, and against an index of Postgres's own trigrams. Then what each index costs an insert. Needs built packages, and Postgres:
 * the embedded or an installed one, of which it starts its own.
 *
 *   node tests/load/search.mjs [--messages 1000000] [--tenants 100] [--rounds 5] [--inserts 200] [--postgres installed] [--no-trigrams]
 *
 * The ways take turns, so that what else the machine does hits all alike.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { embeddedPostgres, installedPostgres, startPostgres } from '@iris/devstack';
import { migrate, prismaStore } from '@iris/store';
import pg from 'pg';
import { indexStatement, newestLooked, newestStatement } from '../../packages/store/dist/prisma-store/message-search.js';
import { foldedText } from '../../packages/store/dist/search/folded-text.js';
import { parseQuery } from '../../packages/store/dist/search/query.js';
import { chanceOf, languageNames, languageOf, sizesOf } from './search-texts.mjs';

const { values: given } = parseArgs({
  options: {
    messages: { type: 'string', default: '1000000' },
    tenants: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '5' },
    inserts: { type: 'string', default: '200' },
    postgres: { type: 'string', default: 'embedded' },
    'no-trigrams': { type: 'boolean', default: false },
  },
});
const [messages, tenants, rounds, inserts] = ['messages', 'tenants', 'rounds', 'inserts'].map((name) => Number(given[name]));
const trigrams = !given['no-trigrams'];
const wanted = 51;

const programs = given.postgres === 'installed' ? installedPostgres() : ((await embeddedPostgres()) ?? installedPostgres());
if (programs === undefined) throw new Error('needs Postgres');
const dir = mkdtempSync(join(tmpdir(), 'iris-search-'));
const server = await startPostgres({ programs, run_dir: dir, data: join(dir, 'data'), password: 'load' });
const say = (text) => console.log(text);
const at = (database) => Object.assign(new URL(server.url), { pathname: `/${database}` }).href;
const connect = async (url, options = '') => {
  const client = new pg.Client({ connectionString: url, options, statement_timeout: 0 });
  await client.connect();
  return client;
};
const tenantOf = (n) => `tn_${String(n).padStart(4, '0')}`;
const languages = languageNames.map((name) => languageOf(name));
const sizes = sizesOf(tenants, messages);
const quantile = (numbers, share) => [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))];
const timed = async (run) => {
  const began = process.hrtime.bigint();
  const value = await run();
  return { ms: Number(process.hrtime.bigint() - began) / 1e6, value };
};

async function database(name) {
  const admin = await connect(server.url);
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  await migrate(at(name));
  const client = await connect(at(name));
  await client.query("SET synchronous_commit = off; SET maintenance_work_mem = '512MB'");
  for (let n = 0; n < tenants; n++) {
    const add = [
      "INSERT INTO tenant (tenant_id, name, created_at) VALUES ($1, 'load', 1)",
      `INSERT INTO channel (tenant_id, chat_id, kind, name, is_default, auto, created_at, number) VALUES ($1, 'android:default', 'default', 'load', true, false, 1, 0)`,
    ];
    for (const text of add) await client.query(text, [tenantOf(n)]);
  }
  return client;
}

/** Which tenant's each message is, shuffled: tenants talk at the same time. */
function order() {
  const owners = new Uint16Array(messages);
  let next = 0;
  sizes.forEach((size, n) => {
    owners.fill(n, next, next + size);
    next += size;
  });
  const chance = chanceOf(42);
  for (let i = messages - 1; i > 0; i--) {
    const j = Math.floor(chance() * (i + 1));
    [owners[i], owners[j]] = [owners[j], owners[i]];
  }
  return owners;
}

const sources = languages.map((_, n) => chanceOf(100 + n));
/** A tenant writes in its own language, and every tenth message in English. */
const textFor = (owner, n) => {
  const language = n % 10 === 9 ? 0 : owner % languages.length;
  return languages[language].text(sources[language]);
};

async function load(client) {
  const owners = order();
  const cursors = new Uint32Array(tenants);
  const put = `INSERT INTO message (tenant_id, message_id, chat_id, thread_id, role, text, ts, cursor, search_text, search_grams)
SELECT tenant_id, message_id, 'android:default', '', 'user', text, ts, cursor, search_text, search_grams FROM json_to_recordset($1::json)
AS i(tenant_id text, message_id text, text text, ts bigint, cursor bigint, search_text text, search_grams int[])`;
  await client.query('SET session_replication_role = replica');
  let rows = [];
  for (let n = 0; n < messages; n++) {
    const tenant_id = tenantOf(owners[n]);
    const text = textFor(owners[n], n);
    rows.push({
      tenant_id,
      message_id: `m_${n}`,
      text,
      ts: 1_724_000_000_000 + n,
      cursor: ++cursors[owners[n]],
      ...foldedText(tenant_id, text),
    });
    if (rows.length < 2_000 && n < messages - 1) continue;
    await client.query(put, [JSON.stringify(rows)]);
    rows = [];
  }
}

const sizeOf = async (client, like) => {
  const sum = `SELECT pg_size_pretty(sum(pg_relation_size(indexrelid))) AS size FROM pg_index WHERE indexrelid::regclass::text LIKE $1`;
  return (await client.query(sum, [like])).rows[0].size;
};

/** Queries by class; words come from the tenant's own language, by how often they occur. */
function classes() {
  const words = (tenant, times, count = 8) => {
    const language = languages[tenant % languages.length];
    const first = language.rankFor(sizes[tenant], times);
    return Array.from({ length: count }, (_, n) => language.vocabulary[first + n]);
  };
  const inside = (word) => (word.length > 6 ? word.slice(1, 6) : word.slice(1));
  const largest = 0;
  const rare = words(largest, 21);
  const mid = words(largest, 540);
  const found = (name, tenant, queries) => ({ name, tenant, queries });
  return [
    found('largest: common word', largest, languages[0].vocabulary.slice(0, 8)),
    found('largest: word in 1 of 250', largest, mid),
    found('largest: rare word', largest, rare),
    found(
      'largest: two words',
      largest,
      mid.map((word, n) => `${word} ${languages[0].vocabulary[n + 20]}`),
    ),
    found(
      'largest: phrase',
      largest,
      mid.map((word) => `"the ${word}"`),
    ),
    found(
      'largest: excluded',
      largest,
      mid.map((word) => `${word} -the`),
    ),
    found(
      'largest: part of a word',
      largest,
      words(largest, 21, 40)
        .filter((word) => word.length >= 6)
        .slice(0, 8)
        .map(inside),
    ),
    found('largest: two letters', largest, ['qz', 'zq', 'xw', 'jj', 'vx', 'the']),
    found('largest: one letter', largest, ['q', 'w', 'x', 'j']),
    found('largest: not there', largest, ['unterschiedslos', 'флюорография', '麒麟', 'xyzzyxyzzy']),
    found(
      'German: part of a word',
      1,
      words(1, 21, 40)
        .filter((word) => word.length >= 6)
        .slice(0, 8)
        .map(inside),
    ),
    found('Russian: rare word', 2, words(2, 21)),
    found('Arabic: rare word', 3, words(3, 21)),
    found('Chinese: one character', 4, [...languages[4].vocabulary[2_000]].concat([...languages[4].vocabulary[9_000]], ['的', '我'])),
    found('Chinese: rare character', 4, ['儞', '冪', '噪', '圜']),
    found('Chinese: two characters', 4, words(4, 21)),
    found('Japanese: word', 5, words(5, 21)),
    found('median tenant: rare word', Math.min(48, tenants - 1), words(Math.min(48, tenants - 1), 5)),
  ];
}

function scans(plan, into = []) {
  if (plan['Relation Name']?.startsWith('message')) into.push(plan);
  for (const inner of plan.Plans ?? []) scans(inner, into);
  return into;
}

async function explained(client, { text, values }) {
  const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
  const found = scans(rows[0]['QUERY PLAN'][0].Plan);
  if (found.some((scan) => scan['Node Type'] === 'Seq Scan')) throw new Error(`reads a whole table: ${text}`);
  const removed = ['Rows Removed by Filter', 'Rows Removed by Index Recheck'];
  return found.reduce(
    (sum, scan) => sum + scan['Actual Loops'] * (scan['Actual Rows'] + removed.reduce((all, name) => all + (scan[name] ?? 0), 0)),
    0,
  );
}

/** What the store does, step by step, by hand. */
async function byHand(run, tenant_id, query) {
  const asked = { tenant_id, query, lane: undefined, wanted };
  const newest = await run(newestStatement(asked));
  const matching = newest.filter((row) => row.rank !== null);
  if ((newest[0]?.looked ?? 0) < newestLooked || matching.filter((row) => row.rank <= 1).length >= wanted) return;
  await run(indexStatement(asked, matching.length < wanted ? 'part' : 'whole'));
}

const like = (text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`;
const pattern = (query, column, operator, values) =>
  [...query.all.map(({ part }) => [part, '']), ...query.none.map(({ part }) => [part, 'NOT '])].map(([part, not]) => {
    values.push(like(part));
    return `${not}${column} ${operator} $${values.length}`;
  });

function plain(column, operator) {
  return (tenant_id, query) => {
    const values = [tenant_id];
    const conditions = pattern(query, column, operator, values).join(' AND ');
    return {
      text: `SELECT message_id, chat_id, thread_id, role, ts, text FROM message WHERE tenant_id = $1 AND deleted_at IS NULL AND ${conditions} ORDER BY cursor DESC NULLS FIRST, seq DESC LIMIT ${wanted}`,
      values,
    };
  };
}

const p50 = (list) => quantile(list, 0.5);
const cell = (list) => (list.length === 0 ? '' : `${p50(list).toFixed(2)} / ${quantile(list, 0.99).toFixed(1)}`).padStart(20);
const line = (name, { store, hand, ilike, trigram }, read, hits) =>
  [
    name.padEnd(28),
    ...[store, hand, ilike, ...(trigrams ? [trigram] : [])].map(cell),
    (p50(store) / p50(hand)).toFixed(2).padStart(7),
    `×${(p50(ilike) / p50(store)).toFixed(2)}`.padStart(9),
    String(read).padStart(12),
    String(hits).padStart(6),
  ].join('');

async function queries() {
  const client = await database('search');
  say(
    `${messages} messages of ${tenants} tenants (largest ${sizes[0]}, median ${sizes[tenants >> 1]}), ${(await client.query('SELECT version()')).rows[0].version.split(' on ')[0]}`,
  );
  await client.query('DROP INDEX message_search_grams_idx');
  say(`loaded in ${((await timed(() => load(client))).ms / 1000).toFixed(0)} s`);
  const build = async (text) => ((await timed(() => client.query(text))).ms / 1000).toFixed(0);
  say(
    `grams: built in ${await build('CREATE INDEX message_search_grams_idx ON message USING GIN (search_grams)')} s, ${await sizeOf(client, 'message_p%search_grams%')}`,
  );
  if (trigrams) {
    await client.query('CREATE EXTENSION btree_gin; CREATE EXTENSION pg_trgm');
    say(
      `trigrams: built in ${await build('CREATE INDEX message_trigrams ON message USING GIN (tenant_id, search_text gin_trgm_ops)')} s, ${await sizeOf(client, 'message_p%search_text%')}`,
    );
  }
  await client.query('VACUUM ANALYZE message');

  const store = prismaStore({ url: at('search') });
  const hand = await connect(
    at('search'),
    '-c plan_cache_mode=force_custom_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off -c cpu_operator_cost=0.1',
  );
  const other = await connect(at('search'), '-c plan_cache_mode=force_custom_plan -c jit=off');
  const run = async ({ text, values }) => (await hand.query(text, [...values])).rows;
  const ilike = plain('text', 'ILIKE');
  const trigram = plain('search_text', 'LIKE');
  say(
    `\n${'query'.padEnd(28)}${['store', 'by hand', 'ILIKE', ...(trigrams ? ['trigrams'] : [])].map((way) => `${way} p50/p99`.padStart(20)).join('')}   hand    ILIKE   rows read  hits`,
  );
  const all = { store: [], hand: [], ilike: [], trigram: [] };
  for (const { name, tenant, queries: texts } of classes()) {
    const tenant_id = tenantOf(tenant);
    const times = { store: [], hand: [], ilike: [], trigram: [] };
    let read = 0;
    let hits = 0;
    const explain = async (statement) => {
      read += await explained(hand, statement);
      return run(statement);
    };
    for (let round = 0; round <= rounds; round++) {
      for (const text of texts) {
        const query = parseQuery(text);
        const ways = {
          store: () => store.messages.search(tenant_id, { text, limit: wanted - 1 }),
          hand: () => byHand(run, tenant_id, query),
          ...(round <= 2 ? { ilike: () => other.query(ilike(tenant_id, query)) } : {}),
          ...(trigrams ? { trigram: () => other.query(trigram(tenant_id, query)) } : {}),
        };
        const names = Object.keys(ways);
        for (const way of round % 2 ? names.reverse() : names) {
          const { ms, value } = await timed(ways[way]);
          // The first round warms up.
          if (round > 0) times[way].push(ms);
          if (way === 'store' && round === 1) hits += value.rows.length;
        }
        if (round === 0) await byHand(explain, tenant_id, query);
      }
    }
    for (const way of Object.keys(all)) all[way].push(...times[way]);
    say(line(name, times, Math.round(read / texts.length), (hits / texts.length).toFixed(0)));
  }
  say(line('all of them', all, '', ''));
  const [slower, faster] = [p50(all.store) / p50(all.hand), p50(all.ilike) / p50(all.store)];
  const good = slower <= 1.5 && faster >= 20;
  say(
    `${good ? 'good' : 'NOT GOOD'}: at most 1.5 times the time by hand (${slower.toFixed(2)}), at least 20 times faster than ILIKE (${faster.toFixed(0)})`,
  );
  if (!good) process.exitCode = 1;
  for (const ended of [client, hand, other]) await ended.end();
  await store.close();
}

/** The store's own insert, 100 rows a call, on databases that differ in their index. */
async function insertCosts() {
  const designs = {
    none: ['DROP INDEX message_search_grams_idx'],
    grams: [],
    ...(trigrams
      ? {
          trigrams: [
            'DROP INDEX message_search_grams_idx',
            'CREATE EXTENSION btree_gin',
            'CREATE EXTENSION pg_trgm',
            'CREATE INDEX message_trigrams ON message USING GIN (tenant_id, search_text gin_trgm_ops)',
          ],
        }
      : {}),
  };
  const stores = new Map();
  for (const [name, statements] of Object.entries(designs)) {
    const client = await database(`insert_${name}`);
    for (const text of statements) await client.query(text);
    await client.end();
    stores.set(name, { store: prismaStore({ url: at(`insert_${name}`), poolSize: 1 }), times: [] });
  }
  const chance = chanceOf(7);
  const bounds = sizes.map(
    (
      (sum) => (size) =>
        (sum += size)
    )(0),
  );
  let id = 0;
  for (let round = 0; round < inserts; round++) {
    const rows = Array.from({ length: 100 }, () => {
      const place = chance() * messages;
      const owner = Math.max(
        0,
        bounds.findIndex((bound) => bound > place),
      );
      id++;
      const fixed = {
        reasoning: null,
        media: null,
        reply_to: null,
        model: null,
        tokens: null,
        runtime: null,
        client_ref: null,
        device_id: null,
        turn_id: null,
        steer: false,
        interrupted: false,
        late: false,
        own_id: null,
      };
      return {
        message: {
          ...fixed,
          tenant_id: tenantOf(owner),
          message_id: `i_${id}`,
          chat_id: 'android:default',
          thread_id: null,
          role: 'user',
          text: textFor(owner, id),
          ts: id,
          cursor: id,
          idempotency_key: `k_${id}`,
        },
      };
    });
    const names = [...stores.keys()];
    for (const name of round % 2 ? names.reverse() : names) {
      const { store, times } = stores.get(name);
      const { ms } = await timed(() => store.messages.insert(rows));
      if (round >= 5) times.push(ms);
    }
  }
  say(`\n${'insert, 100 rows a call'.padEnd(28)}${'rows/s'.padStart(10)}${'p50 ms'.padStart(10)}${'p99 ms'.padStart(10)}`);
  for (const [name, { store, times }] of stores) {
    const mean = times.reduce((sum, ms) => sum + ms, 0) / times.length;
    say(
      `${name.padEnd(28)}${(100_000 / mean).toFixed(0).padStart(10)}${quantile(times, 0.5).toFixed(1).padStart(10)}${quantile(times, 0.99).toFixed(1).padStart(10)}`,
    );
    await store.close();
  }
}

try {
  await queries();
  if (inserts > 5) await insertCosts();
} finally {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}
