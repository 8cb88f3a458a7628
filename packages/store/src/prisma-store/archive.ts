import { type Clock, type Log, silentLog, systemClock } from '@iris/runtime';
import type pg from 'pg';
import type { Archive, ArchiveRow } from '../archive.js';
import { foldedText } from '../search/folded-text.js';
import { type Connections, connections } from './connections.js';

/** What a dump leaves out. Every other table of a tenant is in it, also one that is made later. */
const leftOut = new Map([
  ['token', 'opens the tenant'],
  ['pairing', 'opens the tenant'],
  ['agent_frame', 'under way'],
  ['agent_frame_key', 'under way'],
  ['receipt', 'under way'],
  ['push_target', 'addresses of this installation’s registrations'],
  ['push_frame', 'under way'],
  ['push_ledger', 'of this installation'],
  ['push_action', 'opens a picker'],
  ['push_stale', 'under way'],
  ['push_owed', 'under way'],
  ['audit', 'of this installation'],
]);
const batch = 500;

/** Tables with a tenant, those that others refer to before them. */
const tablesInOrder = `
WITH RECURSIVE tables AS (
  SELECT c.oid, c.relname::text AS name FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
), refers AS (
  SELECT DISTINCT conrelid AS child, confrelid AS parent FROM pg_constraint
  WHERE contype = 'f' AND conrelid <> confrelid AND conrelid IN (SELECT oid FROM tables) AND confrelid IN (SELECT oid FROM tables)
), depth AS (
  SELECT oid, name, 0 AS level FROM tables
  UNION ALL SELECT t.oid, t.name, d.level + 1 FROM depth d JOIN refers r ON r.parent = d.oid JOIN tables t ON t.oid = r.child WHERE d.level < 20
)
SELECT name FROM depth GROUP BY name ORDER BY max(level), name`;

const columnsOf = `
SELECT attname::text AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`;

/** Columns that stay where they are, of tables that are dumped: what opens the tenant and its endpoints. */
const keptBack: Readonly<Record<string, readonly string[]>> = { agent_backend: ['token_id', 'sealed'] };

/** What was true of a row only where it came from. */
const mended: Readonly<Record<string, (row: ArchiveRow, now: number) => ArchiveRow | undefined>> = {
  // An upload that was under way has no bytes that could be moved.
  media: (row) => (row.state === 'uploading' ? undefined : row),
  media_object: (row) => (row.state === 'stored' ? row : undefined),
  turn: (row, now) => (row.state === 'ended' ? row : { ...row, state: 'ended', outcome: 'interrupted', ended_at: now }),
  agent: (row) => ({
    ...row,
    install_id: null,
    boot_id: null,
    epoch: 0,
    link_edge_id: null,
    link_connection_id: null,
    in_seq: 0,
    out_seq: 0,
  }),
  // Without its secrets it serves nobody, until it is set again.
  agent_backend: (row) => ({ ...row, token_id: '', sealed: '' }),
  picker: (row) => (row.state === 'open' ? { ...row, state: 'closed' } : row),
  message: (row) => (row.deleted_at === null ? { ...row, ...foldedText(String(row.tenant_id), String(row.text)) } : row),
};

/** @param options.url as the store's */
export function postgresArchive(options: { url: string; clock?: Clock; log?: Log }): Archive {
  const { clock = systemClock, log = silentLog } = options;
  const sql: Connections = connections({ url: options.url, poolSize: 2, clock, log });
  const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
  const tables = async (): Promise<string[]> => (await sql.everywhere.rows<{ name: string }>(tablesInOrder)).map(({ name }) => name);
  const dumped = async () => (await tables()).filter((name) => !leftOut.has(name));

  async function* rowsOf(client: pg.PoolClient, tenant_id: string, table: string): AsyncGenerator<readonly ArchiveRow[]> {
    const hidden = `ARRAY[${(keptBack[table] ?? []).map(literal).join(', ')}]::text[]`;
    await client.query({
      text: `DECLARE rows CURSOR FOR SELECT to_jsonb(t) - ${hidden} AS row FROM ${quoted(table)} t WHERE tenant_id = ${literal(tenant_id)}`,
    });
    for (;;) {
      const { rows } = await client.query<{ row: ArchiveRow }>(`FETCH ${batch} FROM rows`);
      if (rows.length === 0) break;
      yield rows.map(({ row }) => row);
    }
    await client.query('CLOSE rows');
  }

  return {
    async *dump(tenant_id) {
      const names = await dumped();
      const client = await sql.pool.connect();
      let fault: Error | undefined;
      try {
        // One instant for all tables, however long it takes to read them.
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0');
        await client.query(`SELECT set_config('iris.tenants', $1, true)`, [tenant_id]);
        for (const table of names) for await (const rows of rowsOf(client, tenant_id, table)) yield { table, rows };
        await client.query('COMMIT');
      } catch (error) {
        fault = error as Error;
        throw error;
      } finally {
        // Also when whoever reads turned away in the middle.
        if (fault === undefined) await client.query('ROLLBACK').catch(() => {});
        client.release(fault);
      }
    },
    async load(tenant_id, table, rows) {
      if (rows.length === 0) return 0;
      if (!(await dumped()).includes(table)) throw new Error(`${table}: no table of an archive`);
      const known = new Set((await sql.everywhere.rows<{ name: string }>(columnsOf, [quoted(table)])).map(({ name }) => name));
      const mend = mended[table] ?? ((row: ArchiveRow) => row);
      const given = rows.flatMap((row) => mend({ ...row, tenant_id }, clock.now()) ?? []);
      if (given.length === 0) return 0;
      const columns = Object.keys(given[0]!).filter((name) => known.has(name));
      const list = columns.map(quoted).join(', ');
      // The tenant's own row stands: it takes over what the archive says of it.
      if (table === 'tenant') {
        const set = columns.filter((name) => !['tenant_id', 'state'].includes(name)).map((name) => `${quoted(name)} = r.${quoted(name)}`);
        const text = `UPDATE tenant t SET ${set.join(', ')} FROM jsonb_populate_recordset(NULL::tenant, $2::jsonb) r WHERE t.tenant_id = $1`;
        await sql.rows(text, [tenant_id, JSON.stringify(given)]);
        return 1;
      }
      const insert = `
INSERT INTO ${quoted(table)} (${list}) SELECT ${list} FROM jsonb_populate_recordset(NULL::${quoted(table)}, $2::jsonb)
WHERE tenant_id = $1 ON CONFLICT DO NOTHING RETURNING 1`;
      return (await sql.rows(insert, [tenant_id, JSON.stringify(given)])).length;
    },
    async clear(tenant_id) {
      for (const table of ['channel', 'agent']) await sql.rows(`DELETE FROM ${table} WHERE tenant_id = $1`, [tenant_id]);
    },
    async count(tenant_id) {
      const counts = new Map<string, number>();
      for (const table of await tables()) {
        if (table === 'audit') continue;
        const [found] = await sql.rows<{ rows: number }>(`SELECT count(*) AS rows FROM ${quoted(table)} WHERE tenant_id = $1`, [tenant_id]);
        if ((found?.rows ?? 0) > 0) counts.set(table, found!.rows);
      }
      return counts;
    },
    close: () => sql.close(),
  };
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
