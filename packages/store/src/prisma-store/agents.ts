import type { TokenId } from '@iris/protocol';
import type { AgentRow } from '../rows.js';
import type { Agents } from '../store.js';
import { columns } from './columns.js';
import type { Database } from './database.js';
import { json, maybeRowOf, rowOf } from './mapping.js';

const all = columns.agent.list;
const one = 'tenant_id = $1 AND agent_id = $2';

const attach = `
UPDATE agent SET epoch = epoch + 1, install_id = $3, boot_id = $4, link_edge_id = $5, link_connection_id = $6, caps = $7, link_seen_at = $8
WHERE ${one} RETURNING ${all}`;

/** What the old installation has not acked is the new one's, from 1 on. By way of negative numbers: none may stand twice at any instant. */
const setAside = `UPDATE agent_frame SET seq = -seq WHERE ${one}`;
const renumber = `
UPDATE agent_frame f SET seq = n.number
FROM (SELECT seq, row_number() OVER (ORDER BY seq DESC) AS number FROM agent_frame WHERE ${one}) n
WHERE f.tenant_id = $1 AND f.agent_id = $2 AND f.seq = n.seq`;
const startOver = `
UPDATE agent SET in_seq = 0, out_seq = (SELECT count(*) FROM agent_frame WHERE ${one}) WHERE ${one} RETURNING ${all}`;

const detach = `
UPDATE agent SET link_edge_id = NULL, link_connection_id = NULL, link_seen_at = greatest(link_seen_at, $4)
WHERE ${one} AND epoch = $3 AND link_connection_id IS NOT NULL RETURNING 1`;

const seen = `
UPDATE agent a SET link_seen_at = greatest(a.link_seen_at, $4)
FROM unnest($1::text[], $2::text[], $3::int[]) AS l(tenant_id, agent_id, epoch)
WHERE a.tenant_id = l.tenant_id AND a.agent_id = l.agent_id AND a.epoch = l.epoch AND a.link_connection_id IS NOT NULL`;

const revoke = `UPDATE token SET revoked_at = coalesce(revoked_at, $3) WHERE ${one} RETURNING token_id`;

const processed = `UPDATE agent SET in_seq = $4 WHERE ${one} AND install_id = $3 AND in_seq < $4`;

export function prismaAgents({ prisma, sql }: Database): Agents {
  return {
    create: ({ tenant_id, agent_id, name, is_default, at }) =>
      sql.transaction(async (tx) => {
        await tx.rows('SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE', [tenant_id]);
        if (is_default) await tx.rows('UPDATE agent SET is_default = false WHERE tenant_id = $1 AND is_default', [tenant_id]);
        const insert = 'INSERT INTO agent (tenant_id, agent_id, name, is_default, created_at) VALUES ($1, $2, $3, $4, $5)';
        await tx.rows(insert, [tenant_id, agent_id, name, is_default, at]);
      }),
    get: async (tenant_id, agent_id) =>
      maybeRowOf<AgentRow>(await prisma.agent.findUnique({ where: { tenant_id_agent_id: { tenant_id, agent_id } } })),
    async list(tenant_id) {
      const found = await prisma.agent.findMany({ where: { tenant_id }, orderBy: [{ created_at: 'asc' }, { agent_id: 'asc' }] });
      return found.map(rowOf<AgentRow>);
    },
    change: (tenant_id, agent_id, { name, is_default }) =>
      sql.transaction(async (tx) => {
        await tx.rows('SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE', [tenant_id]);
        if ((await tx.rows(`SELECT 1 FROM agent WHERE ${one}`, [tenant_id, agent_id])).length === 0) return undefined;
        if (is_default)
          await tx.rows('UPDATE agent SET is_default = (agent_id = $2) WHERE tenant_id = $1 AND is_default', [tenant_id, agent_id]);
        const set = `UPDATE agent SET name = coalesce($3, name), is_default = is_default OR $4 WHERE ${one} RETURNING ${all}`;
        return maybeRowOf<AgentRow>((await tx.rows(set, [tenant_id, agent_id, name ?? null, is_default === true]))[0]);
      }),
    remove: (tenant_id, agent_id, at) =>
      sql.transaction(async (tx) => {
        await tx.rows('SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE', [tenant_id]);
        const [row] = await tx.rows<AgentRow>(`SELECT is_default FROM agent WHERE ${one}`, [tenant_id, agent_id]);
        if (row === undefined) return undefined;
        if (row.is_default) return 'default';
        await tx.rows(`UPDATE channel SET agent_id = NULL WHERE ${one}`, [tenant_id, agent_id]);
        const tokens = await tx.rows<{ token_id: TokenId }>(revoke, [tenant_id, agent_id, at]);
        await tx.rows(`DELETE FROM agent WHERE ${one}`, [tenant_id, agent_id]);
        return { token_ids: tokens.map(({ token_id }) => token_id) };
      }),
    attach: (tenant_id, { agent_id, install_id, boot_id, edge_id, connection_id, caps, at }) =>
      sql.transaction(async (tx) => {
        const key = [tenant_id, agent_id];
        const previous = maybeRowOf<AgentRow>((await tx.rows(`SELECT ${all} FROM agent WHERE ${one} FOR NO KEY UPDATE`, key))[0]);
        if (!previous) return undefined;
        const [attached] = await tx.rows(attach, [...key, install_id, boot_id, edge_id, connection_id, json(caps), at]);
        if (previous.install_id === install_id) return { row: rowOf<AgentRow>(attached!), previous };
        await tx.rows(setAside, key);
        await tx.rows(renumber, key);
        const [renewed] = await tx.rows(startOver, key);
        return { row: rowOf<AgentRow>(renewed!), previous };
      }),
    detach: async (tenant_id, agent_id, epoch, at) => (await sql.rows(detach, [tenant_id, agent_id, epoch, at])).length > 0,
    async seen(links, at) {
      if (links.length === 0) return;
      const column = (name: keyof (typeof links)[number]) => links.map((link) => link[name]);
      await sql.rows(seen, [column('tenant_id'), column('agent_id'), column('epoch'), at]);
    },
    async processed(tenant_id, agent_id, install_id, seq) {
      await sql.rows(processed, [tenant_id, agent_id, install_id, seq]);
    },
    async setCommands(tenant_id, agent_id, commands) {
      await sql.rows(`UPDATE agent SET commands = $3 WHERE ${one}`, [tenant_id, agent_id, json(commands)]);
    },
  };
}
