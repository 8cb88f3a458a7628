import type { AgentBackendRow } from '../rows.js';
import type { AgentBackends } from '../store.js';
import type { Database } from './database.js';
import { json, rowOf } from './mapping.js';

const names = ['tenant_id', 'agent_id', 'kind', 'settings', 'token_id', 'sealed', 'has_key', 'changed_at'];
const all = names.join(', ');
const set = `
INSERT INTO agent_backend (${all})
SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE EXISTS (SELECT 1 FROM agent WHERE tenant_id = $1 AND agent_id = $2 FOR KEY SHARE)
ON CONFLICT (tenant_id, agent_id) DO UPDATE SET ${names
  .slice(2)
  .map((name) => `${name} = excluded.${name}`)
  .join(', ')}
RETURNING 1`;
const running = `
SELECT ${names.map((name) => `b.${name}`).join(', ')} FROM agent_backend b
JOIN tenant t ON t.tenant_id = b.tenant_id AND t.state = 'active'
JOIN token k ON k.tenant_id = b.tenant_id AND k.token_id = b.token_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $4)
WHERE (b.tenant_id, b.agent_id) > ($1, $2) ORDER BY b.tenant_id, b.agent_id LIMIT $3`;

export function prismaAgentBackends({ sql }: Database): AgentBackends {
  return {
    set: async ({ tenant_id, agent_id, kind, settings, token_id, sealed, has_key, changed_at }) =>
      (await sql.rows(set, [tenant_id, agent_id, kind, json(settings), token_id, sealed, has_key, changed_at])).length > 0,
    async list(tenant_id) {
      const found = await sql.rows(`SELECT ${all} FROM agent_backend WHERE tenant_id = $1 ORDER BY agent_id`, [tenant_id]);
      return found.map(rowOf<AgentBackendRow>);
    },
    remove: async (tenant_id, agent_id) =>
      (await sql.rows('DELETE FROM agent_backend WHERE tenant_id = $1 AND agent_id = $2 RETURNING 1', [tenant_id, agent_id])).length > 0,
    // The runner serves them all.
    running: async ({ after, limit, now }) =>
      (await sql.everywhere.rows(running, [after?.tenant_id ?? '', after?.agent_id ?? '', limit, now])).map(rowOf<AgentBackendRow>),
  };
}
