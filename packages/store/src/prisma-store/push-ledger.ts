import type { Claimed, LedgerKey, PushLedger, PushLedgerRow } from '../push.js';
import { lanesAmong } from '../push-lanes.js';
import { byKey } from './by-key.js';
import { columns } from './columns.js';
import { type Sql, tenantsOf } from './connections.js';
import type { Database } from './database.js';
import { json, rowOf, threadKey } from './mapping.js';

const all = columns.pushLedger.list;
/** What is asked about a row's device is a question of its own and no join, for the reason of {@link byKey}. */
const decide = `
INSERT INTO push_ledger (${all})
SELECT ${columns.pushLedger.of('r')} FROM jsonb_to_recordset($1::jsonb) AS r(tenant_id text, device_id text, cursor bigint, class text, chat_id text,
  thread_id text, state text, why text, with_cursor bigint, covers bigint, provider text, answer text, attempts integer, due_at bigint,
  decided_at bigint, sent_at bigint, withdrawn_at bigint)
WHERE (SELECT true FROM device d WHERE d.tenant_id = r.tenant_id AND d.device_id = r.device_id)
ON CONFLICT DO NOTHING RETURNING tenant_id, device_id, cursor`;

const keys = 'unnest($1::text[], $2::text[], $3::bigint[]) AS k(tenant_id, device_id, cursor)';
const same = 'l.tenant_id = k.tenant_id AND l.device_id = k.device_id AND l.cursor = k.cursor';
/** By CASE, so that the planner does not go through all that are open of anyone: it is asked about keys. */
const claim = `
UPDATE push_ledger l SET state = 'sending', due_at = $5 FROM ${keys}
WHERE ${same}
  AND (SELECT d.last_seen_at <= l.decided_at AND d.revoked_at IS NULL AND (SELECT t.revoked_at IS NULL AND coalesce(t.expires_at >= $4, true)
      FROM token t WHERE t.tenant_id = d.tenant_id AND t.token_id = d.token_id) IS NOT FALSE
    FROM device d WHERE d.tenant_id = k.tenant_id AND d.device_id = k.device_id)
  AND (SELECT n.state = 'active' FROM tenant n WHERE n.tenant_id = k.tenant_id)
  AND CASE l.state WHEN 'pending' THEN true WHEN 'sending' THEN l.due_at <= $4 ELSE false END
RETURNING l.tenant_id, l.device_id, l.cursor, (
  SELECT count(DISTINCT (chat_id, thread_id)) FROM (
    SELECT chat_id, thread_id, cursor, min(cursor) FILTER (WHERE chat_id = l.chat_id AND thread_id = l.thread_id) OVER () AS first FROM (
      SELECT * FROM push_ledger s WHERE s.tenant_id = l.tenant_id AND s.device_id = l.device_id ORDER BY s.cursor DESC LIMIT ${lanesAmong}
    ) newest WHERE state = 'sent' AND withdrawn_at IS NULL
      AND sent_at > (SELECT d.last_seen_at FROM device d WHERE d.tenant_id = l.tenant_id AND d.device_id = l.device_id)
  ) waiting WHERE first IS NULL OR cursor < first
) AS lanes_before`;

const record = `
WITH o AS (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS o(tenant_id text, device_id text, cursor bigint, state text, why text, provider text, answer text,
    attempted boolean, due_at bigint, at bigint)
), done AS (
  UPDATE push_ledger l SET state = o.state, why = o.why, provider = o.provider, answer = o.answer, due_at = o.due_at,
    attempts = l.attempts + o.attempted::int, sent_at = CASE WHEN o.state = 'sent' THEN o.at ELSE l.sent_at END
  FROM o WHERE l.tenant_id = o.tenant_id AND l.device_id = o.device_id AND l.cursor = o.cursor
    AND (CASE WHEN o.state = 'sent' THEN l.state <> 'sent' ELSE l.state IN ('pending', 'sending') END) AND ${byKey('o', 'l')}
  RETURNING l.tenant_id, l.device_id, l.covers, l.state
), moved AS (
  SELECT tenant_id, device_id, max(covers) AS covers FROM done WHERE state = 'sent' GROUP BY tenant_id, device_id
)
UPDATE device d SET last_pushed_cursor = moved.covers FROM moved
WHERE d.tenant_id = moved.tenant_id AND d.device_id = moved.device_id AND d.last_pushed_cursor < moved.covers
  AND ${byKey('moved', 'd')}`;

const columnsOf = (rows: readonly LedgerKey[]): unknown[] => [
  rows.map(({ tenant_id }) => tenant_id),
  rows.map(({ device_id }) => device_id),
  rows.map(({ cursor }) => cursor),
];
/** Rows in one order, so that two statements that touch the same ones wait for each other in turn. */
const ordered = <R extends LedgerKey>(rows: readonly R[]): R[] =>
  [...rows].sort((a, b) => (a.tenant_id + a.device_id < b.tenant_id + b.device_id ? -1 : a.cursor - b.cursor));

export function prismaPushLedger({ sql }: Database): PushLedger {
  const rows = async (text: string, values: readonly unknown[], name?: string, by: Sql = sql) =>
    (await by.rows(text, values, name)).map(rowOf<PushLedgerRow>);
  return {
    async decide(given) {
      if (given.length === 0) return [];
      const values = json(ordered(given).map((row) => ({ ...row, thread_id: threadKey(row) })));
      return sql.of(tenantsOf(given)).rows<LedgerKey>(decide, [values], 'push_decide');
    },
    async claim(given, now, until) {
      if (given.length === 0) return [];
      return sql.rows<Claimed>(claim, [...columnsOf(ordered(given)), now, until], 'push_claim');
    },
    async record(outcomes) {
      // One statement, and so all or nothing by itself.
      if (outcomes.length > 0) await sql.of(tenantsOf(outcomes)).rows(record, [json(ordered(outcomes))], 'push_record');
    },
    due: (now, limit) =>
      rows(
        `SELECT ${all} FROM push_ledger WHERE state IN ('pending', 'sending') AND due_at <= $1 ORDER BY due_at LIMIT $2`,
        [now, limit],
        undefined,
        sql.everywhere,
      ),
    async release({ tenant_id, device_id, cursor }, now) {
      const text = `
UPDATE push_ledger l SET state = 'pending', with_cursor = NULL, covers = l.cursor, due_at = $4
WHERE tenant_id = $1 AND device_id = $2 AND state = 'collapsed' AND with_cursor = $3`;
      await sql.rows(text, [tenant_id, device_id, cursor, now]);
    },
    async fence(tenant_id, device_id, at) {
      const text = `
WITH skipped AS (
  UPDATE push_ledger SET state = 'skipped', why = 'hello' WHERE tenant_id = $1 AND device_id = $2 AND state = 'pending'
)
SELECT (SELECT count(*) FROM push_ledger WHERE tenant_id = $1 AND device_id = $2 AND state = 'sending' AND due_at > $3) AS under_way,
  coalesce((SELECT last_pushed_cursor FROM device WHERE tenant_id = $1 AND device_id = $2), 0) AS last_pushed_cursor`;
      const [found] = await sql.rows<{ under_way: number; last_pushed_cursor: number }>(text, [tenant_id, device_id, at], 'push_fence');
      return found!;
    },
    of: (tenant_id, cursors) =>
      rows(`SELECT ${all} FROM push_ledger WHERE tenant_id = $1 AND cursor = ANY($2::bigint[])`, [tenant_id, cursors], 'push_of'),
    keysOf: (tenant_id, cursors) =>
      sql.rows<LedgerKey>(
        'SELECT tenant_id, device_id, cursor FROM push_ledger WHERE tenant_id = $1 AND cursor = ANY($2::bigint[])',
        [tenant_id, cursors],
        'push_keys',
      ),
    explain: (tenant_id, device_id, { cursor = Number.MAX_SAFE_INTEGER, limit }) =>
      rows(`SELECT ${all} FROM push_ledger WHERE tenant_id = $1 AND device_id = $2 AND cursor <= $3 ORDER BY cursor DESC LIMIT $4`, [
        tenant_id,
        device_id,
        cursor,
        limit,
      ]),
    shown: (tenant_id) =>
      rows(`SELECT ${all} FROM push_ledger WHERE tenant_id = $1 AND state = 'sent' AND withdrawn_at IS NULL`, [tenant_id], 'push_shown'),
    async withdrawn(given, at) {
      if (given.length === 0) return;
      const text = `UPDATE push_ledger l SET withdrawn_at = coalesce(l.withdrawn_at, $4) FROM ${keys} WHERE ${same} AND ${byKey('k', 'l')}`;
      await sql.rows(text, [...columnsOf(ordered(given)), at], 'push_withdrawn');
    },
  };
}
