import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';

/** Whose rows a statement may touch: tenants, or `everywhere` for what crosses them by its nature. */
export type Scope = readonly string[] | 'everywhere';

/** The roles of migration 0006. A connection begins as the first. */
export const serviceRole = 'iris_service';
const everywhereRole = 'iris_everywhere';

/** Said in front of a statement, in the same trip and the same transaction, which for a statement alone is its own. */
const say = { name: 'iris_scope', text: `SELECT set_config('iris.tenants', $1, true), set_config('role', $2, true)` };

/** For a new connection, before anyone has it. */
export const prepareScope = (client: pg.ClientBase): Promise<unknown> => client.query({ ...say, values: ['', serviceRole] });

const valuesOf = (scope: Scope): [tenants: string, role: string] =>
  scope === 'everywhere' ? ['', everywhereRole] : [scope.join('\n'), serviceRole];

/**
 * The tenants that a statement's first value names: a tenant, or the list of those whose rows it is about, as everything here has it.
 * @throws for a statement that names none: it says `everywhere`, or `of`
 */
export function scopeOf(values: readonly unknown[]): Scope {
  const [first] = values;
  // A list of rows as JSON is no tenant.
  if (typeof first === 'string' && !first.startsWith('[')) return [first];
  if (Array.isArray(first) && first.every((one) => typeof one === 'string')) return [...new Set(first as string[])];
  throw new Error('a statement whose first value is no tenant must say whose rows it is about');
}

/** What the driver's query has inside, of the version that package.json names. */
interface Inside {
  callback: (error: Error | null, result: pg.QueryResult) => void;
  queryMode?: string;
  prepare(connection: Connection): void;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, connection: Connection): void;
}
interface Connection {
  bind(message: { statement: string; values: readonly string[] }): void;
  execute(message: { portal: string; rows: undefined }): void;
}

/**
 * The statement with its scope. Both go out together, so the scope costs no trip; and it ends with the transaction, so nothing of it is left
 * on the connection, also behind a pooler that gives it to others.
 */
export function runScoped<R extends pg.QueryResultRow>(
  client: pg.ClientBase,
  scope: Scope,
  config: pg.QueryConfig & { readonly query_timeout?: number },
): Promise<pg.QueryResult<R>> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(config) as pg.Query & Inside & { query_timeout?: number };
    if (config.query_timeout !== undefined) query.query_timeout = config.query_timeout;
    // Only then does it go by the messages that `prepare` sends.
    query.queryMode = 'extended';
    query.callback = (error, result) => (error ? reject(error) : resolve(result as pg.QueryResult<R>));
    let said = false;
    const { prepare, handleDataRow, handleCommandComplete } = query;
    query.prepare = (connection) => {
      connection.bind({ statement: say.name, values: valuesOf(scope) });
      connection.execute({ portal: '', rows: undefined });
      prepare.call(query, connection);
    };
    query.handleDataRow = (message) => {
      if (said) handleDataRow.call(query, message);
    };
    query.handleCommandComplete = (message, connection) => {
      if (said) handleCommandComplete.call(query, message, connection);
      said = true;
    };
    client.query(query);
  });
}

/** The scope of what Prisma is doing. */
const asked = new AsyncLocalStorage<Scope>();
export const withScope = <T>(scope: Scope, run: () => T): T => asked.run(scope, run);
export const currentScope = (): Scope | undefined => asked.getStore();
