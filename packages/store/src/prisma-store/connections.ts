import type { Clock, Log } from '@iris/runtime';
import pg from 'pg';
import { currentScope, prepareScope, runScoped, type Scope, scopeOf, serviceRole } from './scope.js';

/**
 * SQL over one connection, or over any of the pool. A statement touches only rows of the tenants that its first value names: one, or a
 * list of them. Whatever its text says, it sees no others.
 */
export interface Sql {
  /** @param name of a statement that comes all the time: each connection plans it once. Its text is always the same. */
  rows<R extends object>(text: string, values?: readonly unknown[], name?: string): Promise<R[]>;
}

/** …and how a statement says otherwise whose rows it is about. */
export interface ScopedSql extends Sql {
  /** Of these tenants, which its values name elsewhere. */
  of(tenants: readonly string[]): Sql;
  /** Of whatever tenant: only what crosses them by its nature. */
  readonly everywhere: Sql;
}

export interface Connections extends ScopedSql {
  /** For Prisma. */
  readonly pool: pg.Pool;
  /** All of `run` or nothing of it. It may run again after a deadlock, so it must do nothing but SQL. */
  transaction<T>(run: (sql: ScopedSql) => Promise<T>, limit_ms?: number): Promise<T>;
  /** Close what is idle now, so that the next query connects anew, perhaps to another server. */
  discardIdle(): void;
  close(): Promise<void>;
}

/** Together below the 5 s after which a caller must have heard something, also of a server that accepts and never answers. */
const connect_ms = 2_000;
const query_ms = 4_000;
/** The server gives up a little earlier, so that it says itself what was slow. */
const statement_ms = 3_800;
/** A statement that removes much may take longer. */
export const removal_ms = 60_000;

const deadlocks = new Set(['40P01', '40001']);
const attempts = 4;

const int8Oid = 20;
/** Counts, times and cursors are all below 2^53. */
const types = {
  getTypeParser: (oid: number, format?: string) => (oid === int8Oid ? Number : pg.types.getTypeParser(oid, (format ?? 'text') as 'text')),
} as pg.CustomTypesConfig;

export interface ConnectionOptions {
  readonly url: string;
  readonly poolSize: number;
  readonly clock: Clock;
  readonly log: Log;
  /** More settings of the server for these connections, as `name=value`. */
  readonly settings?: readonly string[];
}

const textsOfNames = new Map<string, string>();
/**
 * A connection knows one statement by a name: two that are called alike would fail only on a connection that has had the other.
 * @throws for the second of two, on any
 */
export function ownName(name: string, text: string): string {
  const known = textsOfNames.get(name) ?? text;
  if (known !== text) throw new Error(`two statements are called ${name}`);
  textsOfNames.set(name, text);
  return name;
}
export function connections({ url, poolSize, clock, log, settings = [] }: ConnectionOptions): Connections {
  const pool = new ScopedPool({
    connectionString: url,
    onConnect: prepareScope as never,
    application_name: 'iris',
    max: poolSize,
    connectionTimeoutMillis: connect_ms,
    query_timeout: query_ms,
    statement_timeout: statement_ms,
    idle_in_transaction_session_timeout: 10_000,
    // Everything here looks rows up by key. Left to itself the planner would rather read all of a smallish table than ask 16
    // partitions for each of a hundred keys, though only one of them is ever asked.
    options: [`role=${serviceRole}`, 'enable_hashjoin=off', 'enable_mergejoin=off', ...settings]
      .map((setting) => `-c ${setting}`)
      .join(' '),
    idleTimeoutMillis: 30_000,
    // Follows a name that moved to another server, without anything having failed.
    maxLifetimeSeconds: 1_800,
    keepAlive: true,
  });
  const connected = new Set<pg.PoolClient>();
  const idle = new Set<pg.PoolClient>();
  pool.on('connect', (client) => connected.add(client));
  pool.on('acquire', (client) => idle.delete(client));
  pool.on('remove', (client) => {
    connected.delete(client);
    idle.delete(client);
  });
  pool.on('release', (error, client) => {
    if (!error) idle.add(client);
  });
  // A connection that dies while idle is dropped by the pool; without a listener it would end the process.
  pool.on('error', (error) => log.warn('store.connection_lost', { reason: error.message }));

  const discardIdle = (): void => {
    // The pool drops an idle connection that reports an error, at once, so that nobody gets it any more.
    for (const client of [...idle]) client.emit('error', new Error('given up'));
  };

  /** Connections on which something failed that was not the statement's own fault. */
  const broken = new WeakSet<pg.PoolClient>();

  async function query<R extends object>(
    client: pg.PoolClient,
    { text, values = [], name }: { readonly text: string; readonly values?: readonly unknown[]; readonly name?: string | undefined },
    limit_ms: number,
    scope?: Scope,
  ): Promise<R[]> {
    try {
      const named = name === undefined ? {} : { name: ownName(name, text) };
      const config = { text, ...named, values: [...values], types, query_timeout: Math.max(1, limit_ms) };
      if (scope === undefined) return (await client.query<R>(config as pg.QueryConfig)).rows;
      return (await runScoped<R>(client, scope, config as pg.QueryConfig)).rows;
    } catch (error) {
      if (!isStatementError(error)) {
        broken.add(client);
        log.warn('store.connection_dropped', { reason: error instanceof Error ? error.message : String(error), code: sqlState(error) });
        // The others are connected to the same server, which is gone, leaving, or may no longer be written to. Unless it is only slow.
        if (!isTimeout(error)) discardIdle();
      }
      throw error;
    }
  }

  async function withClient<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const client = await pool.connect();
      // A connection can also fail between two statements; the next one says so.
      const quiet = (): void => {};
      client.on('error', quiet);
      try {
        return await use(client);
      } catch (error) {
        if (attempt >= attempts || !deadlocks.has(sqlState(error) ?? '')) throw error;
      } finally {
        client.off('error', quiet);
        client.release(broken.has(client));
      }
    }
  }

  return {
    pool,
    discardIdle,
    ...scopedSql((scope, statement) => withClient((client) => query(client, statement, query_ms, scope))),
    transaction: (run, limit_ms = query_ms) =>
      withClient(async (client) => {
        const until = clock.now() + limit_ms;
        const left = () => until - clock.now();
        await query(client, { text: limit_ms === query_ms ? 'BEGIN' : `BEGIN; SET LOCAL statement_timeout = ${limit_ms}` }, left());
        try {
          const result = await run(scopedSql((scope, statement) => query(client, statement, left(), scope)));
          await query(client, { text: 'COMMIT' }, left());
          return result;
        } catch (error) {
          if (!broken.has(client)) await query(client, { text: 'ROLLBACK' }, query_ms).catch(() => {});
          throw error;
        }
      }),
    async close() {
      // A silent server does not answer a goodbye either.
      const timer = clock.after(connect_ms, () => {
        for (const client of connected) (client as unknown as pg.Client).connection.stream.destroy();
      });
      await pool.end();
      timer.cancel();
    },
  };
}

interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string | undefined;
}

function scopedSql(run: <R extends object>(scope: Scope, statement: Statement) => Promise<R[]>): ScopedSql {
  const within = (scope: Scope): Sql => ({ rows: (text, values = [], name) => run(scope, { text, values, name }) });
  return {
    rows: async (text, values = [], name) => run(scopeOf(values), { text, values, name }),
    of: within,
    everywhere: within('everywhere'),
  };
}

/** Prisma asks the pool itself; whose rows it is about, `database.ts` has said around it. A class since the pool is one, and Prisma wants it to be. */
class ScopedPool extends pg.Pool {
  override query = (async (config: pg.QueryConfig, values?: unknown[]) => {
    const scope = currentScope();
    if (scope === undefined) return super.query(config, values);
    const client = await this.connect();
    let fault: Error | undefined;
    try {
      return await runScoped(client, scope, values === undefined ? config : { ...config, values });
    } catch (error) {
      if (!isStatementError(error)) fault = error as Error;
      throw error;
    } finally {
      client.release(fault);
    }
  }) as pg.Pool['query'];
}

/** Of rows that go out as one JSON value. */
export const tenantsOf = (rows: readonly { readonly tenant_id: string }[]): string[] => [
  ...new Set(rows.map(({ tenant_id }) => tenant_id)),
];

/** Five letters of what went wrong in a statement; undefined for anything else. */
export const sqlState = (error: unknown): string | undefined => (error instanceof pg.DatabaseError ? error.code : undefined);

export const foreignKeyViolation = '23503';
export const uniqueViolation = '23505';

/** The driver's own: the server said nothing in time. */
const isTimeout = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout';

const isServerLeaving = (error: unknown): boolean => /^(25006|57P0[1-5])$/.test(sqlState(error) ?? '');

/** The statement failed and the connection is as good as before. */
const isStatementError = (error: unknown): boolean => {
  const code = sqlState(error);
  return code !== undefined && !isServerLeaving(error) && !code.startsWith('08');
};
