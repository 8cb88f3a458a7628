import type { Keys } from '../store.js';
import { noFrame } from './agent-frames.js';
import type { Database } from './database.js';

/** One trip per tenant, since most have nothing. Agents’ keys are looked for agent by agent: their index begins so. */
const expire = `
WITH old_frames AS (
  SELECT old.agent_id, old.key FROM agent a CROSS JOIN LATERAL (
    SELECT k.agent_id, k.key FROM agent_frame_key k WHERE k.tenant_id = a.tenant_id AND k.agent_id = a.agent_id AND k.at < $2 AND ${noFrame} LIMIT $3
  ) old WHERE a.tenant_id = $1 LIMIT $3
), frames AS (
  DELETE FROM agent_frame_key k USING old_frames o WHERE k.tenant_id = $1 AND k.agent_id = o.agent_id AND k.key = o.key RETURNING 1
), old_lanes AS (
  SELECT chat_id, thread_id FROM channel WHERE tenant_id = $1 AND created_at < $2 AND idempotency_key IS NOT NULL LIMIT $3
), lanes AS (
  UPDATE channel c SET idempotency_key = NULL FROM old_lanes o
  WHERE c.tenant_id = $1 AND c.chat_id = o.chat_id AND c.thread_id = o.thread_id RETURNING 1
), old_messages AS (
  SELECT message_id FROM dead_key WHERE tenant_id = $1 AND at < $2 LIMIT $3
), messages AS (
  DELETE FROM dead_key d USING old_messages o WHERE d.tenant_id = $1 AND d.message_id = o.message_id RETURNING 1
), emptied AS (
  UPDATE message m SET idempotency_key = NULL FROM old_messages o
  WHERE m.tenant_id = $1 AND m.message_id = o.message_id AND m.deleted_at IS NOT NULL
), old_pickers AS (
  SELECT picker_id FROM picker WHERE tenant_id = $1 AND state <> 'open' AND greatest(created_at, expires_at) < $2 LIMIT $3
), pickers AS (
  DELETE FROM picker p USING old_pickers o WHERE p.tenant_id = $1 AND p.picker_id = o.picker_id RETURNING 1
)
SELECT (SELECT count(*) FROM frames) AS frames, (SELECT count(*) FROM lanes) AS lanes,
  (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM pickers) AS pickers`;

export const prismaKeys = ({ sql }: Pick<Database, 'sql'>): Keys => ({
  async expire(tenant_id, { before, limit }) {
    const [counts] = await sql.rows<Record<string, number>>(expire, [tenant_id, before, limit], 'keys_expire');
    const gone = Object.values(counts ?? {});
    return { expired: gone.reduce((sum, count) => sum + count, 0), more: gone.some((count) => count >= limit) };
  },
});
