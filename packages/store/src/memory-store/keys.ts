import type { Keys } from '../store.js';
import { dropKeys } from './agent-frames.js';
import type { MemoryState, TenantState } from './state.js';

export const memoryKeys = (state: MemoryState): Keys => ({
  async expire(tenant_id, { before, limit }) {
    const tenant = state.tenants.get(tenant_id);
    if (tenant === undefined) return { expired: 0, more: false };
    const gone = [frameKeys, channelKeys, deadKeys, pickers].map((expire) => expire(tenant, before, limit));
    return { expired: gone.reduce((sum, count) => sum + count, 0), more: gone.some((count) => count >= limit) };
  },
});

function frameKeys(tenant: TenantState, before: number, limit: number): number {
  let gone = 0;
  for (const agent of tenant.agents.values()) gone += dropKeys(agent, before, limit - gone);
  return gone;
}

function channelKeys(tenant: TenantState, before: number, limit: number): number {
  const old = [...tenant.channelKeys].filter(([, lane]) => (tenant.channels.get(lane)?.created_at ?? 0) < before).slice(0, limit);
  for (const [key] of old) tenant.channelKeys.delete(key);
  return old.length;
}

function deadKeys(tenant: TenantState, before: number, limit: number): number {
  const old = [...tenant.tombstones].filter(([, { idempotency_key, at }]) => idempotency_key !== null && at < before).slice(0, limit);
  for (const [message_id, tombstone] of old) {
    tenant.deadKeys.delete(tombstone.idempotency_key!);
    tenant.tombstones.set(message_id, { ...tombstone, idempotency_key: null });
  }
  return old.length;
}

function pickers(tenant: TenantState, before: number, limit: number): number {
  const old = [...tenant.pickers.values()]
    .filter(({ state, created_at, expires_at }) => state !== 'open' && Math.max(created_at, expires_at ?? 0) < before)
    .slice(0, limit);
  for (const { picker_id } of old) tenant.pickers.delete(picker_id);
  return old.length;
}
