import { copy } from '../copy.js';
import type { AgentBackendRow } from '../rows.js';
import type { AgentBackends } from '../store.js';
import type { MemoryState } from './state.js';

const place = ({ tenant_id, agent_id }: Pick<AgentBackendRow, 'tenant_id' | 'agent_id'>) => `${tenant_id}\n${agent_id}`;
const byPlace = (a: AgentBackendRow, b: AgentBackendRow): number => (place(a) < place(b) ? -1 : 1);

export function memoryAgentBackends(state: MemoryState): AgentBackends {
  return {
    async set(row) {
      const tenant = state.tenants.get(row.tenant_id);
      if (!tenant?.agents.has(row.agent_id)) return false;
      tenant.backends.set(row.agent_id, copy(row));
      return true;
    },
    list: async (tenant_id) => [...(state.tenants.get(tenant_id)?.backends.values() ?? [])].map(copy).sort(byPlace),
    remove: async (tenant_id, agent_id) => state.tenants.get(tenant_id)?.backends.delete(agent_id) ?? false,
    running: async ({ after, limit, now }) =>
      [...state.tenants.values()]
        .filter(({ row }) => row.state === 'active')
        .flatMap(({ backends, tokens }) =>
          [...backends.values()].filter(({ token_id }) => {
            const token = tokens.get(token_id);
            return token !== undefined && token.revoked_at === null && (token.expires_at === null || token.expires_at > now);
          }),
        )
        .sort(byPlace)
        .filter((row) => after === undefined || place(row) > place(after))
        .slice(0, limit)
        .map(copy),
  };
}
