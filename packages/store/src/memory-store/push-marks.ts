import type { TenantId } from '@iris/protocol';
import type { PushOwed, PushStale } from '../push.js';
import type { MemoryState } from './state.js';

export function memoryPushStale(state: MemoryState): PushStale {
  return {
    async mark(tenant_id, at) {
      const push = state.tenants.get(tenant_id)?.push;
      if (push) push.stale_at = Math.max(push.stale_at ?? at, at);
    },
    due: async (before, limit) =>
      [...state.tenants]
        .flatMap(([tenant_id, { push }]) =>
          push.stale_at !== undefined && push.stale_at <= before ? [{ tenant_id, at: push.stale_at }] : [],
        )
        .sort((one, other) => one.at - other.at)
        .slice(0, limit),
    async clear(tenant_id, at) {
      const push = state.tenants.get(tenant_id)?.push;
      if (push?.stale_at !== undefined && push.stale_at <= at) push.stale_at = undefined;
    },
  };
}

export function memoryPushOwed(state: MemoryState): PushOwed {
  const owedOf = (tenant_id: TenantId) => state.tenants.get(tenant_id)?.push.owed;
  return {
    async mark(tenant_id, cursor, at) {
      owedOf(tenant_id)?.set(cursor, Math.max(owedOf(tenant_id)?.get(cursor) ?? at, at));
    },
    due: async (before, limit) =>
      [...state.tenants]
        .flatMap(([tenant_id, { push }]) => [...push.owed].map(([cursor, at]) => ({ tenant_id, cursor, at })))
        .filter(({ at }) => at <= before)
        .sort((one, other) => one.at - other.at)
        .slice(0, limit),
    async clear({ tenant_id, cursor, at }) {
      const owed = owedOf(tenant_id);
      if ((owed?.get(cursor) ?? Number.MAX_SAFE_INTEGER) <= at) owed?.delete(cursor);
    },
  };
}
