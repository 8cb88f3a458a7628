import type { AgentId, ChatId, TenantId } from '@iris/protocol';
import { migrate, prismaStore, type Store } from '@iris/store';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { movingAddress, restartablePostgres } from './postgres-servers.js';
import { userMessage } from './rows.js';
import type { Restartable } from './servers.js';

describe('Postgres goes away and comes back', () => {
  let server: Restartable & { readonly data: string };
  let store: Store;
  const tenant_id = 'tenant' as TenantId;
  const poolSize = 4;
  const insert = () => store.messages.insert([{ message: userMessage(tenant_id) }]);

  async function sql(...statements: string[]): Promise<pg.QueryResult> {
    const client = new pg.Client({ connectionString: server.url, application_name: 'the test' });
    client.on('error', () => {});
    await client.connect();
    try {
      let result: pg.QueryResult | undefined;
      for (const statement of statements) result = await client.query(statement);
      return result!;
    } finally {
      await client.end();
    }
  }
  const connected = async () => Number((await sql(`select count(*) from pg_stat_activity where application_name = 'iris'`)).rows[0].count);
  /** As many calls at once as there are connections, so that each connection has been used. */
  const everyConnection = () => Promise.all(Array.from({ length: poolSize }, insert));
  /** What callers do: ask again until it works. How many calls failed before. */
  async function failuresUntilItWorks(): Promise<number> {
    for (let failed = 0; ; failed++) {
      try {
        await insert();
        return failed;
      } catch (error) {
        if (failed > 20) throw error;
      }
    }
  }
  /** A setting reaches each process of the server when that gets round to it. */
  async function untilRefused(): Promise<never> {
    for (;;) await failuresUntilItWorks();
  }
  async function untilNewConnectionsSay(read_only: 'on' | 'off'): Promise<void> {
    for (let said: string | undefined; said !== read_only; ) {
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      const { rows } = await client.query<{ default_transaction_read_only: string }>('show default_transaction_read_only');
      await client.end();
      said = rows[0]?.default_transaction_read_only;
    }
  }

  beforeAll(async () => {
    server = await restartablePostgres();
    await migrate(server.url);
    store = prismaStore({ url: server.url, poolSize });
    await store.tenants.create({ tenant_id, name: 'T', agent_id: 'agent' as AgentId, at: 1 });
    await everyConnection();
  }, 120_000);
  afterAll(async () => {
    await store?.close();
    await server?.end();
  }, 60_000);

  test('frozen: every call fails within 5 s, prisma’s and transactions too; thawed: all work again', async () => {
    const timed = async (call: () => Promise<unknown>): Promise<number> => {
      const begin = performance.now();
      await expect(call()).rejects.toThrow();
      return performance.now() - begin;
    };
    server.freeze();
    try {
      const calls = [
        insert,
        () => store.tenants.get(tenant_id),
        () => store.channels.setDefault(tenant_id, 'x' as ChatId),
        insert,
        insert,
        insert,
      ];
      for (const took of await Promise.all(calls.map(timed))) expect(took).toBeLessThan(5_000);
      expect(await store.ready()).toBe(false);
    } finally {
      server.thaw();
    }
    expect(await failuresUntilItWorks()).toBeLessThanOrEqual(1);
    await everyConnection();
    expect(await store.ready()).toBe(true);
  }, 30_000);

  test('frozen: it can be closed', async () => {
    const another = prismaStore({ url: server.url, poolSize });
    await Promise.all(Array.from({ length: poolSize }, () => another.ready()));
    server.freeze();
    try {
      const begin = performance.now();
      await another.close();
      expect(performance.now() - begin).toBeLessThan(5_000);
    } finally {
      server.thaw();
    }
  }, 30_000);

  test('killed: refused at once; started again on its data: what was answered is there', async () => {
    const row = userMessage(tenant_id);
    await store.messages.insert([{ message: row }]);
    await server.kill();
    await expect(insert()).rejects.toThrow();
    expect(await store.ready()).toBe(false);
    await server.start();
    expect(await failuresUntilItWorks()).toBeLessThanOrEqual(1);
    await everyConnection();
    // The test's server does not wait for its disk, so what was written last may be lost with a kill; the tenant was checkpointed.
    expect(await store.tenants.get(tenant_id)).toBeDefined();
  }, 60_000);

  test('connections ended by an administrator: at most one failed call, then anew', async () => {
    await everyConnection();
    await sql(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'iris'`);
    expect(await failuresUntilItWorks()).toBeLessThanOrEqual(1);
    await everyConnection();
  }, 30_000);

  test('read-only, as a demoted server is: not ready, connections are given up, and writes work when it ends', async () => {
    await everyConnection();
    expect(await connected()).toBe(poolSize);
    await sql('alter system set default_transaction_read_only = on', 'select pg_reload_conf()');
    await expect(untilRefused()).rejects.toMatchObject({ code: '25006' });
    expect(await store.ready()).toBe(false);
    // Reading goes on meanwhile.
    expect(await store.tenants.get(tenant_id)).toBeDefined();
    expect(await connected()).toBeLessThan(poolSize);
    await sql('set default_transaction_read_only = off', 'alter system reset default_transaction_read_only', 'select pg_reload_conf()');
    await untilNewConnectionsSay('off');
    expect(await failuresUntilItWorks()).toBeLessThanOrEqual(1);
    expect(await store.ready()).toBe(true);
    await everyConnection();
  }, 30_000);

  test('C72: another server takes its place, the old one is left up and read-only: writes go on within 30 s, without a restart', async () => {
    await server.stop();
    const promoted = await restartablePostgres(server.data);
    await server.start();
    const address = await movingAddress(server.url);
    const moved = prismaStore({ url: address.url, poolSize });
    const write = () => moved.messages.insert([{ message: userMessage(tenant_id) }]);
    const rowsOf = async (url: string) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query('select count(*)::int as rows from message');
      await client.end();
      return (rows[0] as { rows: number }).rows;
    };
    try {
      await Promise.all(Array.from({ length: poolSize }, write));
      await sql('alter system set default_transaction_read_only = on', 'select pg_reload_conf()');
      await expect(
        (async () => {
          for (;;) await write();
        })(),
      ).rejects.toMatchObject({ code: '25006' });
      expect(await moved.ready()).toBe(false);
      const [old, before] = [await rowsOf(server.url), await rowsOf(promoted.url)];
      address.leadTo(promoted.url);
      const begun = performance.now();
      for (let done = false; !done; ) {
        expect(performance.now() - begun).toBeLessThan(30_000);
        done = await write().then(
          () => true,
          () => false,
        );
      }
      expect(await moved.ready()).toBe(true);
      // Every connection is to the one that may be written to, also those that nobody had used meanwhile.
      await Promise.all(Array.from({ length: 3 * poolSize }, write));
      expect(await rowsOf(promoted.url)).toBe(before + 1 + 3 * poolSize);
      expect(await rowsOf(server.url)).toBe(old);
    } finally {
      await sql('set default_transaction_read_only = off', 'alter system reset default_transaction_read_only', 'select pg_reload_conf()');
      await moved.close();
      await address.end();
      await promoted.end();
    }
  }, 60_000);
});
