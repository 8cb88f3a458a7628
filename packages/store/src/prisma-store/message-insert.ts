import { mediaIdsOf } from '../media-ids.js';
import type { MessageRow } from '../rows.js';
import { foldedText } from '../search/folded-text.js';
import { storable } from '../storable.js';
import type { Messages, NewTurn } from '../store.js';
import { columns } from './columns.js';
import { foreignKeyViolation, sqlState, tenantsOf } from './connections.js';
import type { Database } from './database.js';
import { rowOf, threadKey } from './mapping.js';

type Row = Parameters<Messages['insert']>[0][number];
type Outcome = { row: MessageRow; inserted: boolean } | 'no_lane' | 'deleted';

/** `IS TRUE` keeps it a question to a hash table; a join of the two would compare each with each. */
const wentIn = '((i.tenant_id, i.message_id) IN (SELECT n.tenant_id, n.message_id FROM inserted n)) IS TRUE';

/**
 * Rows of any tenants with their turns and files, as one JSON array: one statement, one commit.
 * What stands already, deleted or not, is passed over by the unique indexes; so is a row without a lane by the join.
 * They are numbered in the order given, and go in in an order that is the same for everyone: calls that have rows in common, as when a batch is asked
 * of two instances, wait for one another instead of locking each other out until Postgres notices.
 */
const insert = `
WITH input AS (
  SELECT * FROM json_to_recordset($1::json) AS i(
    ord int, tenant_id text, message_id text, chat_id text, thread_id text, role text, text text, reasoning text, media jsonb, reply_to text,
    model text, tokens bigint, runtime jsonb, ts bigint, cursor bigint, idempotency_key text, client_ref text, device_id text, turn_id text,
    steer boolean, interrupted boolean, late boolean, own_id text, search_text text, search_grams int[], files json,
    t_turn_id text, t_agent_id text, t_message_id text, t_kind text, t_device_id text, t_connection_id text, t_created_at bigint)
), inserted AS (
  INSERT INTO message (${columns.message.list}, search_text, search_grams, seq)
  SELECT ${columns.message.of('i')}, i.search_text, i.search_grams, i.seq
  FROM (SELECT *, nextval('message_seq_seq') AS seq FROM input ORDER BY ord) i
  JOIN channel c ON c.tenant_id = i.tenant_id AND c.chat_id = i.chat_id AND c.thread_id = i.thread_id
  ORDER BY i.tenant_id, i.message_id
  ON CONFLICT DO NOTHING
  RETURNING tenant_id, message_id
), turns AS (
  INSERT INTO turn (tenant_id, turn_id, chat_id, thread_id, agent_id, message_id, kind, device_id, connection_id, created_at)
  SELECT i.tenant_id, t_turn_id, chat_id, thread_id, t_agent_id, t_message_id, t_kind, t_device_id, t_connection_id, t_created_at
  FROM input i WHERE t_turn_id IS NOT NULL AND ${wentIn} ORDER BY i.ord
  ON CONFLICT (tenant_id, turn_id) DO NOTHING
), files AS (
  INSERT INTO message_media (tenant_id, media_id, message_id)
  SELECT i.tenant_id, f.media_id, i.message_id
  FROM input i, json_array_elements_text(i.files) AS f(media_id) WHERE ${wentIn}
)
SELECT tenant_id, message_id FROM inserted`;

/** What stands in the way of rows that were passed over: the one with the same key before the one with the same id. */
const standing = `
WITH input AS (SELECT * FROM json_to_recordset($1::json) AS i(ord int, tenant_id text, message_id text, idempotency_key text))
SELECT DISTINCT ON (ord) * FROM (
  SELECT i.ord, 0 AS rank, m.deleted_at, ${columns.message.of('m')} FROM input i
  JOIN message m ON m.tenant_id = i.tenant_id AND m.idempotency_key = i.idempotency_key
  UNION ALL
  SELECT i.ord, 1 AS rank, m.deleted_at, ${columns.message.of('m')} FROM input i
  JOIN message m ON m.tenant_id = i.tenant_id AND m.message_id = i.message_id
) found ORDER BY ord, deleted_at NULLS FIRST, rank`;

interface Inserted {
  readonly tenant_id: string;
  readonly message_id: string;
}

const param = (rows: readonly Row[]): string => JSON.stringify(rows.map(record));
const keys = (rows: readonly Row[]): string =>
  JSON.stringify(
    rows.map(({ message: { tenant_id, message_id, idempotency_key } }, ord) => ({ ord, tenant_id, message_id, idempotency_key })),
  );

function record({ message, turn }: Row, ord: number): Record<string, unknown> {
  const files = mediaIdsOf(message.media);
  return {
    ...message,
    ord,
    thread_id: threadKey(message),
    ...foldedText(message.tenant_id, message.text),
    ...(files.length > 0 ? { files } : {}),
    ...(turn ? turnFields(turn) : {}),
  };
}

const turnFields = ({ turn_id, agent_id, message_id, kind, device_id, connection_id, created_at }: NewTurn) => ({
  t_turn_id: turn_id,
  t_agent_id: agent_id,
  t_message_id: message_id,
  t_kind: kind,
  t_device_id: device_id,
  t_connection_id: connection_id,
  t_created_at: created_at,
});

const idOf = (row: { readonly tenant_id: string; readonly message_id: string }): string => `${row.tenant_id}\n${row.message_id}`;

export function messageInsert({ sql }: Pick<Database, 'sql'>): Messages['insert'] {
  /** Rows that have neither an id nor a key in common. */
  async function insertDistinct(rows: readonly Row[]): Promise<Outcome[]> {
    const inserted = await tryInsert(rows);
    if (inserted === 'no_lane') return oneByOne(rows);
    const outcomes: (Outcome | undefined)[] = rows.map(({ message }) =>
      inserted.has(idOf(message)) ? { row: message, inserted: true } : undefined,
    );
    const left = rows.filter((_, index) => outcomes[index] === undefined);
    if (left.length === 0) return outcomes as Outcome[];
    const found = new Map(
      (await sql.of(tenantsOf(left.map(({ message }) => message))).rows<MessageRow & Found>(standing, [keys(left)], 'message_found')).map(
        (row) => [row.ord, row],
      ),
    );
    let ord = 0;
    return outcomes.map((outcome) => outcome ?? outcomeOf(found.get(ord++)));
  }

  /** The ids that went in; `no_lane` when a lane went away at this very moment. */
  async function tryInsert(rows: readonly Row[]): Promise<Set<string> | 'no_lane'> {
    try {
      return new Set(
        (await sql.of(tenantsOf(rows.map(({ message }) => message))).rows<Inserted>(insert, [param(rows)], 'message_insert')).map(idOf),
      );
    } catch (error) {
      if (sqlState(error) === foreignKeyViolation) return 'no_lane';
      throw error;
    }
  }

  async function oneByOne(rows: readonly Row[]): Promise<Outcome[]> {
    if (rows.length === 1) return ['no_lane'];
    const outcomes: Outcome[] = [];
    for (const row of rows) outcomes.push(...(await insertDistinct([row])));
    return outcomes;
  }

  return async (given) => {
    if (given.length === 0) return [];
    const rows = given.map((row) => ({ ...row, message: storable(row.message) }));
    const firsts = firstOfEach(rows);
    const distinct = rows.filter((_, index) => firsts[index] === index);
    const outcomes = await insertDistinct(distinct);
    const results = new Map<number, Outcome>();
    firsts.forEach((first, index) => {
      if (first === index) results.set(index, outcomes[results.size]!);
    });
    // A repeat within the call: the first is in now, or was refused, and then the repeat is asked for itself.
    for (const [index, first] of firsts.entries()) {
      const outcome = results.get(first);
      if (first === index || outcome === undefined) continue;
      results.set(index, typeof outcome === 'string' ? (await insertDistinct([rows[index]!]))[0]! : { row: outcome.row, inserted: false });
    }
    return rows.map((_, index) => results.get(index)!);
  };
}

interface Found {
  readonly ord: number;
  readonly rank: number;
  readonly deleted_at: number | null;
}

function outcomeOf(found: (MessageRow & Found) | undefined): Outcome {
  if (!found) return 'no_lane';
  const { ord: _ord, rank: _rank, deleted_at, ...row } = found;
  return deleted_at === null ? { row: rowOf<MessageRow>(row), inserted: false } : 'deleted';
}

/** For each row the index of the first in the call with its id or key; its own when it is the first. */
function firstOfEach(rows: readonly Row[]): number[] {
  const seen = new Map<string, number>();
  return rows.map(({ message }, index) => {
    const key = message.idempotency_key;
    const names = [`i\n${idOf(message)}`, ...(key === null ? [] : [`k\n${message.tenant_id}\n${key}`])];
    const first = names.map((name) => seen.get(name)).find((at) => at !== undefined) ?? index;
    if (first === index) for (const name of names) seen.set(name, index);
    return first;
  });
}
