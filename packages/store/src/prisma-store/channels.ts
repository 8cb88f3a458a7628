import type { Lane } from '@iris/protocol';
import type { ChannelRow, TurnRow } from '../rows.js';
import type { Channels } from '../store.js';
import { columns } from './columns.js';
import { removal_ms, type Sql } from './connections.js';
import type { Database } from './database.js';
import { maybeRowOf, rowOf, threadKey } from './mapping.js';

/** Changes to a tenant's lanes happen one after another. */
const lockTenant = 'SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE';
const byKey = `SELECT ${columns.channel.list} FROM channel WHERE tenant_id = $1 AND idempotency_key = $2`;
const byLane = `SELECT ${columns.channel.list} FROM channel WHERE tenant_id = $1 AND chat_id = $2 AND thread_id = $3`;
const count = 'SELECT count(*) AS lanes FROM channel WHERE tenant_id = $1';
const nextNumber = 'UPDATE tenant SET last_number = last_number + 1 WHERE tenant_id = $1 RETURNING last_number';
const insert = `
INSERT INTO channel (tenant_id, chat_id, thread_id, kind, name, auto, agent_id, created_at, number, idempotency_key)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING ${columns.channel.list}`;
const rename = `
UPDATE channel SET name = $4, auto = $5 WHERE tenant_id = $1 AND chat_id = $2 AND thread_id = $3
  AND ($6::text IS NULL OR (name = $6 AND auto AND name <> $4)) RETURNING ${columns.channel.list}`;

const bind = `UPDATE channel SET agent_id = $3 WHERE tenant_id = $1 AND chat_id = $2 RETURNING ${columns.channel.list}`;

/** The lanes that go: a thread, or a channel with its threads. */
const going = `c.tenant_id = $1 AND c.chat_id = $2 AND ($3 = '' OR c.thread_id = $3)`;
const running = `SELECT ${columns.turn.of('c')} FROM turn c WHERE ${going} AND c.state IN ('sent', 'running') ORDER BY c.position`;
const named = `
SELECT DISTINCT f.media_id FROM message c JOIN message_media f ON f.tenant_id = c.tenant_id AND f.message_id = c.message_id WHERE ${going}`;
const remove = `DELETE FROM channel c WHERE ${going} RETURNING c.chat_id, c.thread_id, c.number`;

const stillUsed = 'SELECT DISTINCT media_id FROM message_media WHERE tenant_id = $1 AND media_id = ANY($2)';

const noUse = `UPDATE media SET state = 'unused' WHERE tenant_id = $1 AND media_id = ANY($2) AND state = 'attached'`;

/** Those that no message of the tenant names any more, which are `unused` from now on. */
export async function unusedMedia(tx: Sql, tenant_id: string, media_ids: readonly string[]): Promise<string[]> {
  if (media_ids.length === 0) return [];
  const used = new Set((await tx.rows<{ media_id: string }>(stillUsed, [tenant_id, media_ids])).map((row) => row.media_id));
  const unused = media_ids.filter((id) => !used.has(id));
  if (unused.length > 0) await tx.rows(noUse, [tenant_id, unused.toSorted()]);
  return unused;
}

export function prismaChannels({ prisma, sql }: Database): Channels {
  return {
    list: async (tenant_id) => (await prisma.channel.findMany({ where: { tenant_id }, orderBy: { number: 'asc' } })).map(rowOf<ChannelRow>),
    create: ({ tenant_id, chat_id, name, auto, idempotency_key, max, at }) =>
      sql.transaction(async (tx) => {
        if ((await tx.rows(lockTenant, [tenant_id])).length === 0) return 'no_channel';
        const [first] = await tx.rows(byKey, [tenant_id, idempotency_key]);
        if (first) return { row: rowOf<ChannelRow>(first), created: false };
        const [parent] = chat_id === undefined ? [] : await tx.rows<ChannelRow>(byLane, [tenant_id, chat_id, '']);
        if (chat_id !== undefined && !parent) return 'no_channel';
        const [counted] = await tx.rows<{ lanes: number }>(count, [tenant_id]);
        if ((counted?.lanes ?? 0) >= max) return 'over_quota';
        const [given] = await tx.rows<{ last_number: number }>(nextNumber, [tenant_id]);
        const n = given!.last_number;
        const lane = parent ? [parent.chat_id, `t_${n}`, 'thread'] : [`android:chan_${n}`, '', 'channel'];
        const [row] = await tx.rows(insert, [tenant_id, ...lane, name, auto, parent?.agent_id ?? null, at, n, idempotency_key]);
        return { row: rowOf<ChannelRow>(row!), created: true };
      }),
    async rename(tenant_id, lane, name, { auto, only_if }) {
      const at = [tenant_id, lane.chat_id, threadKey(lane)];
      const [renamed] = await sql.rows(rename, [...at, name, auto, only_if ?? null]);
      if (renamed) return rowOf<ChannelRow>(renamed);
      const row = maybeRowOf<ChannelRow>((await sql.rows(byLane, at))[0]);
      return row === undefined || row.name === name ? row : 'conflict';
    },
    setDefault: (tenant_id, chat_id) =>
      sql.transaction(async (tx) => {
        await tx.rows(lockTenant, [tenant_id]);
        if ((await tx.rows(byLane, [tenant_id, chat_id, ''])).length === 0) return false;
        // Two steps: at no instant may there be two.
        await tx.rows(`UPDATE channel SET is_default = false, kind = 'channel' WHERE tenant_id = $1 AND is_default`, [tenant_id]);
        await tx.rows(`UPDATE channel SET is_default = true, kind = 'default' WHERE tenant_id = $1 AND chat_id = $2 AND thread_id = ''`, [
          tenant_id,
          chat_id,
        ]);
        return true;
      }),
    bind: (tenant_id, chat_id, agent_id) =>
      sql.transaction(async (tx) => {
        // Threads that are made meanwhile take over what their channel says: they wait for this, or this finds them.
        await tx.rows(lockTenant, [tenant_id]);
        const known =
          agent_id === null ? [true] : await tx.rows('SELECT 1 FROM agent WHERE tenant_id = $1 AND agent_id = $2', [tenant_id, agent_id]);
        if (known.length === 0) return undefined;
        const bound = await tx.rows<ChannelRow>(bind, [tenant_id, chat_id, agent_id]);
        return maybeRowOf<ChannelRow>(bound.map(rowOf<ChannelRow>).find(({ thread_id }) => thread_id === null));
      }),
    remove: (tenant_id, lane) =>
      sql.transaction(async (tx) => {
        const at = [tenant_id, lane.chat_id, threadKey(lane)];
        await tx.rows(lockTenant, [tenant_id]);
        const row = maybeRowOf<ChannelRow>((await tx.rows(`${byLane} FOR UPDATE`, at))[0]);
        if (!row) return undefined;
        if (row.is_default) return 'default';
        const turns = await tx.rows(running, at);
        const media = await tx.rows<{ media_id: string }>(named, at);
        const gone = await tx.rows<Lane & { number: number }>(remove, at);
        const lanes = gone.sort((a, b) => a.number - b.number).map(({ chat_id, thread_id }) => rowOf<Lane>({ chat_id, thread_id }));
        const media_ids = await unusedMedia(
          tx,
          tenant_id,
          media.map(({ media_id }) => media_id),
        );
        return { lanes, media_ids, running: turns.map(rowOf<TurnRow>) };
      }, removal_ms),
  };
}
