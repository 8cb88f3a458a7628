import type { Cursor, Lane, MessageId } from '@iris/protocol';
import { mediaIdsOf } from '../media-ids.js';
import type { MessageRow } from '../rows.js';
import { foldedText } from '../search/folded-text.js';
import { storable } from '../storable.js';
import type { MessagePlace, Messages } from '../store.js';
import { unusedMedia } from './channels.js';
import { columns } from './columns.js';
import type { Database } from './database.js';
import { json, maybeRowOf, rowOf, threadKey } from './mapping.js';
import { messageInsert } from './message-insert.js';
import { messageSearch } from './message-search.js';

const all = columns.message.list;
const inLane = 'tenant_id = $1 AND chat_id = $2 AND thread_id = $3';

const replace = `
WITH changed AS (
  UPDATE message SET role = $3, text = $4, reasoning = $5, media = $6, reply_to = $7, model = $8, tokens = $9, runtime = $10, ts = $11,
    steer = $12, interrupted = $13, late = $14, search_text = $15, search_grams = $17::int[]
  WHERE tenant_id = $1 AND message_id = $2 AND deleted_at IS NULL RETURNING ${all}
), gone AS (
  DELETE FROM message_media f USING changed c WHERE f.tenant_id = c.tenant_id AND f.message_id = c.message_id AND f.media_id <> ALL($16::text[])
), added AS (
  INSERT INTO message_media (tenant_id, media_id, message_id)
  SELECT c.tenant_id, n.media_id, c.message_id FROM changed c, unnest($16::text[]) AS n(media_id) ON CONFLICT DO NOTHING
)
SELECT ${all} FROM changed`;

/** A deleted one gets its place as well: pages before it ask for that. */
const setCursors = `
UPDATE message m SET cursor = n.cursor
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n(tenant_id, message_id, cursor)
WHERE m.tenant_id = n.tenant_id AND m.message_id = n.message_id AND m.cursor IS NULL`;

const place = `SELECT cursor, seq FROM message WHERE ${inLane} AND message_id = $4`;

const standing = `SELECT ${all} FROM message WHERE tenant_id = $1 AND message_id = ANY($2) AND deleted_at IS NULL`;

const places = `SELECT message_id, chat_id, thread_id, cursor, own_id FROM message WHERE tenant_id = $1 AND message_id = ANY($2) AND deleted_at IS NULL`;

/** Ids that nobody stored yet: refused from now on. Their place is the end of what the lane has. */
const bury = `
INSERT INTO message (tenant_id, message_id, chat_id, thread_id, role, text, search_text, search_grams, ts, cursor, deleted_at)
SELECT $1, id, $2, $3, '', '', '', '{}', $5, coalesce((SELECT max(cursor) FROM message WHERE ${inLane} AND deleted_at IS NULL), 0), $5
FROM unnest($4::text[]) AS n(id) ON CONFLICT DO NOTHING`;

/** Everything but id, place and key; and the key is to go once no repeat can carry it any more. */
const empty = `
WITH standing AS MATERIALIZED (
  SELECT message_id, role, iris_day(ts) AS day FROM message WHERE ${inLane} AND message_id = ANY($4) AND deleted_at IS NULL
), emptied AS (
UPDATE message SET deleted_at = $5, role = '', text = '', search_text = '', search_grams = '{}', reasoning = NULL, media = NULL, reply_to = NULL, model = NULL,
  tokens = NULL, runtime = NULL, ts = $5, client_ref = NULL, device_id = NULL, turn_id = NULL, steer = false, interrupted = false, late = false, own_id = NULL
WHERE ${inLane} AND message_id = ANY($4) AND deleted_at IS NULL RETURNING message_id, idempotency_key
), noted AS (
  INSERT INTO dead_key (tenant_id, message_id, at) SELECT $1, message_id, $5 FROM emptied WHERE idempotency_key IS NOT NULL ON CONFLICT DO NOTHING
), counted AS (
  INSERT INTO usage_day AS u (tenant_id, day, user_messages, agent_messages)
  SELECT $1, day, count(*) FILTER (WHERE role = 'user'), count(*) FILTER (WHERE role <> 'user') FROM standing JOIN emptied USING (message_id)
  GROUP BY day ORDER BY day
  ON CONFLICT (tenant_id, day) DO UPDATE SET user_messages = u.user_messages + excluded.user_messages, agent_messages = u.agent_messages + excluded.agent_messages
)
SELECT message_id FROM emptied`;

const dropFiles = 'DELETE FROM message_media WHERE tenant_id = $1 AND message_id = ANY($2) RETURNING media_id';

/** By the index of places: what is old is at its beginning. Both lists are small, and read once. */
const aged = `
SELECT message_id, chat_id, thread_id FROM (
  SELECT message_id, chat_id, thread_id, ts, cursor, seq FROM message WHERE tenant_id = $1 AND deleted_at IS NULL AND cursor IS NOT NULL ORDER BY cursor, seq LIMIT $3
) oldest WHERE ts < $2 AND message_id NOT IN (
  SELECT message_id FROM turn WHERE tenant_id = $1 AND state IN ('sent', 'running') AND message_id IS NOT NULL
  UNION ALL SELECT message_id FROM turn WHERE tenant_id = $1 AND state = 'queued' AND message_id IS NOT NULL
) ORDER BY cursor, seq`;

const owed = `SELECT ${all} FROM message WHERE cursor IS NULL AND deleted_at IS NULL AND ts < $1 ORDER BY ts, seq LIMIT $2`;

export function prismaMessages({ prisma, sql, searching, clock }: Database): Messages {
  const rows = async (text: string, values: readonly unknown[], name?: string): Promise<MessageRow[]> =>
    (await sql.rows(text, values, name)).map(rowOf<MessageRow>);
  return {
    insert: messageInsert({ sql }),
    async replace(given) {
      const row = storable(given);
      const { tenant_id, message_id, role, text, reasoning, media, reply_to, model, tokens, runtime, ts, steer, interrupted, late } = row;
      const content = [role, text, reasoning, json(media), reply_to, model, tokens, json(runtime), ts, steer, interrupted, late];
      const { search_text, search_grams } = foldedText(tenant_id, text);
      return (await rows(replace, [tenant_id, message_id, ...content, search_text, mediaIdsOf(media), search_grams]))[0];
    },
    async setCursors(marks) {
      if (marks.length === 0) return;
      const column = (name: keyof (typeof marks)[number]) => marks.map((mark) => mark[name]);
      await sql.rows(setCursors, [column('tenant_id'), column('message_id'), column('cursor')], 'message_cursors');
    },
    get: async (tenant_id, message_id) =>
      maybeRowOf<MessageRow>(await prisma.message.findFirst({ where: { tenant_id, message_id, deleted_at: null } })),
    standing: async (tenant_id, message_ids) =>
      message_ids.length === 0 ? [] : rows(standing, [tenant_id, message_ids], 'message_standing'),
    async places(tenant_id, message_ids) {
      const found = await sql.rows<MessagePlace & { message_id: MessageId }>(places, [tenant_id, message_ids], 'message_places');
      return new Map(found.map(rowOf<(typeof found)[number]>).map(({ message_id, ...at }) => [message_id, at]));
    },
    async page(tenant_id, lane, { before, limit }) {
      const at = [tenant_id, lane.chat_id, threadKey(lane)];
      const values: unknown[] = [...at, limit + 1];
      let [form, earlier] = ['newest', ''];
      if (before !== undefined) {
        const [end] = await sql.rows<{ cursor: Cursor | null; seq: number }>(place, [...at, before]);
        if (!end) return 'unknown_before';
        values.push(before, end.seq, ...(end.cursor === null ? [] : [end.cursor]));
        // Each form is one range of the index; the id is named since an owed one may have got its place meanwhile.
        const [name, range] =
          end.cursor === null ? ['owed', '(cursor IS NOT NULL OR seq < $6)'] : ['placed', '(cursor, seq) < ($7::bigint, $6::bigint)'];
        [form, earlier] = [name, `AND message_id <> $5 AND ${range}`];
      }
      const page = `SELECT ${all} FROM message WHERE ${inLane} AND deleted_at IS NULL ${earlier} ORDER BY cursor DESC NULLS FIRST, seq DESC LIMIT $4`;
      const found = await rows(page, values, `message_page_${form}`);
      return { rows: found.slice(0, limit).reverse(), has_more: found.length > limit };
    },
    search: messageSearch(searching.everywhere, clock),
    remove: (tenant_id, lane, message_ids, at) =>
      sql.transaction(async (tx) => {
        const values = [tenant_id, lane.chat_id, threadKey(lane), [...new Set(message_ids)], at];
        const standing = await tx.rows(`SELECT 1 FROM channel WHERE ${inLane} FOR KEY SHARE`, values.slice(0, 3));
        if (standing.length === 0) return { removed: [], media_ids: [] };
        // First the unknown ones: an insert that is under way is waited for here, and then emptied below.
        await tx.rows(bury, values);
        const gone = new Set((await tx.rows<{ message_id: MessageId }>(empty, values)).map(({ message_id }) => message_id));
        const files = gone.size === 0 ? [] : await tx.rows<{ media_id: string }>(dropFiles, [tenant_id, [...gone]]);
        const media_ids = await unusedMedia(tx, tenant_id, [...new Set(files.map(({ media_id }) => media_id))]);
        return { removed: [...new Set(message_ids)].filter((id) => gone.has(id)), media_ids };
      }),
    async deleted(tenant_id, message_ids) {
      const select = 'SELECT message_id FROM message WHERE tenant_id = $1 AND message_id = ANY($2) AND deleted_at IS NOT NULL';
      return new Set((await sql.rows<{ message_id: MessageId }>(select, [tenant_id, message_ids])).map(({ message_id }) => message_id));
    },
    aged: async (tenant_id, { before_ts, limit }) =>
      (await sql.rows<Lane & { message_id: MessageId }>(aged, [tenant_id, before_ts, limit])).map(rowOf<Lane & { message_id: MessageId }>),
    owed: async ({ before_ts, limit }) => (await sql.everywhere.rows(owed, [before_ts, limit])).map(rowOf<MessageRow>),
  };
}
