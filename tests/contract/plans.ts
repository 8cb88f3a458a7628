import pg from 'pg';

/** A statement as the store sent it. */
export interface Sent {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly name: string | undefined;
  /** Of its connection. */
  readonly options: string;
}
/** What Postgres says of a step, as JSON. */
export interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Plan[];
}
export const removed = (scan: Plan): number => (scan['Rows Removed by Filter'] ?? 0) + (scan['Rows Removed by Index Recheck'] ?? 0);

const { query } = pg.Client.prototype;

/** What the store sends while `run` runs. */
export async function sentBy(run: () => Promise<unknown>): Promise<Sent[]> {
  const sent: Sent[] = [];
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [config] = args as [{ text?: string; values?: readonly unknown[]; name?: string } | string];
    const { options } = (this as unknown as { connectionParameters: { options?: string } }).connectionParameters;
    if (typeof config === 'object' && config.text !== undefined && config.name !== 'iris_scope') {
      sent.push({ text: config.text, values: config.values ?? [], name: config.name, options: options ?? '' });
    }
    return Reflect.apply(query, this, args);
  } as typeof query;
  await run().finally(() => {
    pg.Client.prototype.query = query;
  });
  return sent;
}

/** Connections with the settings of those of the store. */
export function planners(): { on(url: string, options: string): Promise<pg.Client>; end(): Promise<void> } {
  const made = new Map<string, Promise<pg.Client>>();
  return {
    on(url, options) {
      const standing = made.get(options);
      if (standing) return standing;
      const client = new pg.Client({ connectionString: url, options });
      const connected = client.connect().then(() => client);
      made.set(options, connected);
      return connected;
    },
    async end() {
      for (const each of made.values()) await (await each).end();
    },
  };
}
