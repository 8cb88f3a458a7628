import type { ChatId } from '@iris/protocol';
import { laneKey } from '@iris/protocol';
import { copy } from '../copy.js';
import type { Tenants } from '../store.js';
import { newAgent } from './agents.js';
import { type MemoryState, newTenantState } from './state.js';

export function memoryTenants(state: MemoryState): Tenants {
  return {
    async create({ tenant_id, name, agent_id, at }) {
      if (state.tenants.has(tenant_id)) throw new Error(`tenant ${tenant_id} exists`);
      const tenant = newTenantState({ tenant_id, name, state: 'active', quotas: {}, cursor_reserved: 0, created_at: at });
      const lane = { chat_id: 'android:default' as ChatId, thread_id: null };
      tenant.channels.set(laneKey(lane), {
        ...lane,
        tenant_id,
        kind: 'default',
        name: 'Default',
        is_default: true,
        auto: false,
        agent_id: null,
        created_at: at,
      });
      tenant.agents.set(agent_id, newAgent({ tenant_id, agent_id, name: 'Default', is_default: true, at }));
      state.tenants.set(tenant_id, tenant);
    },
    get: async (tenant_id) => copy(state.tenants.get(tenant_id)?.row),
    list: async ({ after, limit }) =>
      [...state.tenants.values()]
        .map((tenant) => tenant.row)
        .filter((row) => after === undefined || row.tenant_id > after)
        .sort((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1))
        .slice(0, limit)
        .map(copy),
    async setQuotas(tenant_id, quotas) {
      const tenant = state.tenants.get(tenant_id);
      if (!tenant) return undefined;
      tenant.row = { ...tenant.row, quotas: { ...tenant.row.quotas, ...quotas } };
      return copy(tenant.row);
    },
    async setState(tenant_id, state_) {
      const tenant = state.tenants.get(tenant_id);
      if (!tenant) return undefined;
      tenant.row = { ...tenant.row, state: state_ };
      return copy(tenant.row);
    },
    async reserveCursors(tenant_id, count) {
      const tenant = state.tenants.get(tenant_id);
      if (!tenant) return undefined;
      const from = tenant.row.cursor_reserved;
      tenant.row = { ...tenant.row, cursor_reserved: from + count };
      return { from, to: from + count };
    },
    remove: async (tenant_id) => state.tenants.delete(tenant_id),
  };
}
