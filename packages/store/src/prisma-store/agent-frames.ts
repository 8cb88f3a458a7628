import type { AgentId, TenantId } from '@iris/protocol';
import { frameKeysKept_ms, voidFrame } from '../agent-frame.js';
import type { AgentFrameRow } from '../rows.js';
import type { AgentFrames } from '../store.js';
import type { Sql } from './connections.js';
import type { Database } from './database.js';
import { json, rowOf } from './mapping.js';

const one = 'tenant_id = $1 AND agent_id = $2';
const all = 'tenant_id, agent_id, seq, frame';

const lock = `SELECT out_seq FROM agent WHERE ${one} FOR NO KEY UPDATE`;
const claimKeys = `
INSERT INTO agent_frame_key (tenant_id, agent_id, key, at) SELECT $1, $2, key, $4 FROM unnest($3::text[]) AS k(key)
ON CONFLICT DO NOTHING RETURNING key`;
/** While its frame waits, a key is asked for. */
export const noFrame = `NOT EXISTS (SELECT 1 FROM agent_frame f WHERE f.tenant_id = k.tenant_id AND f.agent_id = k.agent_id AND f.key = k.key)`;
const insert = `
WITH input AS (SELECT * FROM json_to_recordset($3::json) AS i(seq bigint, key text, frame jsonb)),
kept AS (INSERT INTO agent_frame (tenant_id, agent_id, seq, key, frame) SELECT $1, $2, seq, key, frame FROM input)
UPDATE agent SET out_seq = (SELECT max(seq) FROM input) WHERE ${one}`;

interface Input {
  readonly frame: Record<string, unknown>;
  readonly key?: string;
}

export function prismaAgentFrames({ sql, clock }: Database): AgentFrames {
  /** Keys that nobody gave before; they are taken now. */
  async function claim(tx: Sql, tenant_id: TenantId, agent_id: AgentId, keys: readonly string[]): Promise<Set<string>> {
    if (keys.length === 0) return new Set();
    return new Set((await tx.rows<{ key: string }>(claimKeys, [tenant_id, agent_id, keys, clock.now()])).map(({ key }) => key));
  }
  async function keptByKey(tx: Sql, tenant_id: TenantId, agent_id: AgentId, keys: readonly string[]): Promise<Map<string, AgentFrameRow>> {
    if (keys.length === 0) return new Map();
    const select = `SELECT key, ${all} FROM agent_frame WHERE ${one} AND key = ANY($3)`;
    const found = await tx.rows<AgentFrameRow & { key: string }>(select, [tenant_id, agent_id, keys]);
    return new Map(found.map(({ key, ...row }) => [key, rowOf<AgentFrameRow>(row)]));
  }

  return {
    append: (tenant_id, agent_id, frames) =>
      sql.transaction(async (tx) => {
        const [agent] = await tx.rows<{ out_seq: number }>(lock, [tenant_id, agent_id]);
        if (!agent) return [];
        const keys = [...new Set(frames.flatMap(({ key }) => key ?? []))];
        const fresh = await claim(tx, tenant_id, agent_id, keys);
        const known = await keptByKey(
          tx,
          tenant_id,
          agent_id,
          keys.filter((key) => !fresh.has(key)),
        );
        let seq = agent.out_seq;
        const added: { seq: number; key: string | undefined; frame: Record<string, unknown> }[] = [];
        const rows = frames.map(({ frame, key }: Input): AgentFrameRow => {
          const first = key === undefined ? undefined : known.get(key);
          if (first) return first;
          if (key !== undefined && !fresh.has(key)) return { tenant_id, agent_id, seq: 0, frame };
          const row = { tenant_id, agent_id, seq: ++seq, frame };
          added.push({ seq, key, frame });
          if (key !== undefined) known.set(key, row);
          return row;
        });
        if (added.length > 0) await tx.rows(insert, [tenant_id, agent_id, json(added)]);
        return rows;
      }),
    async after(tenant_id, agent_id, seq) {
      const select = `SELECT ${all} FROM agent_frame WHERE ${one} AND seq > $3 ORDER BY seq`;
      return (await sql.rows(select, [tenant_id, agent_id, seq])).map(rowOf<AgentFrameRow>);
    },
    async ack(tenant_id, agent_id, seq) {
      const drop = `
WITH acked AS (DELETE FROM agent_frame WHERE ${one} AND seq <= $3)
DELETE FROM agent_frame_key k WHERE ${one} AND at < $4 AND ${noFrame}`;
      await sql.rows(drop, [tenant_id, agent_id, seq, clock.now() - frameKeysKept_ms]);
    },
    async withdraw(tenant_id, agent_id, turn_id) {
      const empty = `UPDATE agent_frame SET frame = $4 WHERE ${one} AND frame->>'type' = 'turn.start' AND frame->>'turn_id' = $3`;
      await sql.rows(empty, [tenant_id, agent_id, turn_id, json(voidFrame)]);
    },
  };
}
