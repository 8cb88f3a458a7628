import type { AgentId, ChatId, MessageId, TenantId } from '@iris/protocol';
import { type MessageRow, migrate, prismaStore, type Store } from '@iris/store';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Plan, planners, removed, type Sent, sentBy } from './plans.js';
import { databaseForTests } from './postgres-servers.js';

/** What Postgres reads for a search and for a page of history: the very statements of the store, with the settings of its connections. */

const flat = { chat_id: 'android:default' as ChatId, thread_id: null };
const empty = { reasoning: null, media: null, reply_to: null, model: null, tokens: null, runtime: null, client_ref: null };
const plain = { device_id: null, turn_id: null, steer: false, interrupted: false, late: false, own_id: null, idempotency_key: null };

describe('plans', () => {
  let database: { url: string; end(): Promise<void> };
  let store: Store;
  let client: pg.Client;
  const planned = planners();
  const query = pg.Client.prototype.query;
  const depths = 10_300;

  async function tenant(tenant_id: string, texts: readonly string[]): Promise<MessageId[]> {
    const id = tenant_id as TenantId;
    await store.tenants.create({ tenant_id: id, name: 'Plans', agent_id: `ag_${id}` as AgentId, at: 1 });
    const rows = texts.map(
      (text, n): MessageRow => ({
        ...empty,
        ...plain,
        ...flat,
        tenant_id: id,
        message_id: `m_${n}` as MessageId,
        role: 'user',
        text,
        ts: n,
        cursor: n + 1,
      }),
    );
    for (let n = 0; n < rows.length; n += 500) await store.messages.insert(rows.slice(n, n + 500).map((message) => ({ message })));
    return rows.map(({ message_id }) => message_id);
  }

  async function planOf({ text, values, options }: Sent): Promise<Plan[]> {
    const on = await planned.on(database.url, options);
    // As the store acts: searches are held to their tenant by their own words alone, so that the index of the grams may be used.
    await on.query(
      text.includes('search_text')
        ? 'SET ROLE iris_everywhere'
        : `SET ROLE iris_service; SET iris.tenants = ${pg.escapeLiteral(String(values[0]))}`,
    );
    const { rows } = await on.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, [...values]);
    return scansOf(rows[0]['QUERY PLAN'][0].Plan);
  }
  const scansOf = (plan: Plan): Plan[] => [
    ...(plan['Relation Name']?.startsWith('message') ? [plan] : []),
    ...(plan.Plans ?? []).flatMap(scansOf),
  ];
  const read = (scans: readonly Plan[]): number =>
    Math.round(scans.reduce((sum, scan) => sum + scan['Actual Loops'] * (scan['Actual Rows'] + removed(scan)), 0));

  const searches = [
    'common',
    'rareword',
    'arewor',
    'common rareword',
    '"common word"',
    'common -word',
    '天',
    '天气',
    'xq',
    'q',
    'nowhere',
    '%_',
  ];
  /** Everything is read at most once by each of the two statements, and their hits once more. */
  const bound = (rows: number) => 2 * rows + 51;

  beforeAll(async () => {
    database = await databaseForTests();
    await migrate(database.url);
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
    store = prismaStore({ url: database.url });
    // Neighbours in one partition: a plan that reads more than its tenant meets them.
    const ids = Array.from({ length: 200 }, (_, n) => `tn_${n}`);
    const { rows } = await client.query<{ id: string }>(
      `select id from unnest($1::text[]) as i(id) where satisfies_hash_partition('message'::regclass, 16, 3, id)`,
      [ids],
    );
    const [large, small, ...others] = rows.map(({ id }) => id) as [string, string, ...string[]];
    neighbours = { large, small };
    const text = (n: number) => (n % 900 === 5 ? `rareword 天气 xq ${n}` : `common word number ${n} of many`);
    lane = await tenant(
      large,
      Array.from({ length: depths }, (_, n) => text(n)),
    );
    await tenant(
      small,
      Array.from({ length: 200 }, (_, n) => text(n)),
    );
    for (const id of others.slice(0, 2))
      await tenant(
        id,
        Array.from({ length: 1_500 }, (_, n) => text(n)),
      );
  }, 240_000);
  afterAll(async () => {
    await store?.close();
    await planned.end();
    await client?.end();
    await database?.end();
  }, 30_000);
  let neighbours: { large: string; small: string };
  let lane: MessageId[];

  test.each(['before the server has looked at the table', 'after'])(
    'a search reads its tenant alone, never a whole table: %s',
    async (when) => {
      if (when === 'after') await client.query('vacuum analyze message');
      for (const [tenant_id, rows] of [
        [neighbours.large, depths],
        [neighbours.small, 200],
      ] as const) {
        for (const text of searches) {
          const lanes = [{}, { lane: flat }];
          for (const where of lanes) {
            const statements = await sentBy(() => store.messages.search(tenant_id as TenantId, { text, limit: 50, ...where }));
            expect(statements.length).toBeGreaterThan(0);
            for (const statement of statements) {
              // A named one would be planned for any words after a few times.
              expect(statement.name).toBeUndefined();
              expect(statement.options).toContain('plan_cache_mode=force_custom_plan');
              const scans = await planOf(statement);
              const kinds = scans.map((scan) => scan['Node Type']);
              expect({ text, kinds }).toEqual({ text, kinds: kinds.filter((kind) => kind !== 'Seq Scan') });
              expect(read(scans)).toBeLessThanOrEqual(bound(rows));
            }
          }
        }
      }
    },
    120_000,
  );

  test('a rare word is found by the index: what is read does not grow with the tenant', async () => {
    for (const text of ['rareword', 'arewor', '天气', '天', 'xq', 'nowhere']) {
      const statements = await sentBy(() => store.messages.search(neighbours.large as TenantId, { text, limit: 50 }));
      const last = statements.at(-1)!;
      expect(last.text).toContain('search_grams');
      expect({ text, read: read(await planOf(last)) }).toEqual({ text, read: text === 'nowhere' ? 0 : 12 });
    }
  }, 60_000);

  test('SEA5: a search that Postgres cannot finish in time gives what it found among the newest, and says that there is more', async () => {
    pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
      const [config] = args as [{ text?: string; values?: readonly unknown[] }];
      if (config.text?.includes('search_grams')) Object.assign(config, { text: 'SELECT pg_sleep(30)', values: [] });
      return Reflect.apply(query, this, args);
    } as typeof query;
    try {
      const found = await store.messages.search(neighbours.large as TenantId, { text: 'rareword', limit: 50 });
      expect(found).toMatchObject({ rows: [{ message_id: 'm_9905' }], has_more: true });
    } finally {
      pg.Client.prototype.query = query;
    }
    const found = await store.messages.search(neighbours.large as TenantId, { text: 'rareword', limit: 50 });
    expect([found.rows.length, found.has_more]).toEqual([12, false]);
  }, 30_000);

  test('a page of history reads as many rows at depth 1, 100 and 10,000, by a plan of its own and by one for all', async () => {
    const counts: number[] = [];
    for (const depth of [1, 100, 10_000]) {
      const before = lane[depths - depth]!;
      const statements = await sentBy(() => store.messages.page(neighbours.large as TenantId, flat, { before, limit: 50 }));
      const page = statements.at(-1)!;
      expect(page.text).toContain('LIMIT');
      const scans = await planOf(page);
      counts.push(read(scans));
      expect(scans.map((scan) => scan['Node Type'])).toEqual(['Index Scan']);
      const literals = page.values.map((value) => (typeof value === 'number' ? String(value) : pg.escapeLiteral(String(value)))).join(', ');
      await client.query(`SET ROLE iris_service; SET iris.tenants = ${pg.escapeLiteral(neighbours.large)}`);
      await client.query(`PREPARE page AS ${page.text}; SET plan_cache_mode = force_generic_plan`);
      const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE page (${literals})`);
      await client.query('DEALLOCATE page; RESET plan_cache_mode; RESET ROLE');
      counts.push(read(scansOf(rows[0]['QUERY PLAN'][0].Plan)));
    }
    expect(counts).toEqual(counts.map(() => 51));
  }, 60_000);
});
