import { copy } from '../copy.js';
import type { Tokens } from '../store.js';
import type { MemoryState } from './state.js';

export function memoryTokens(state: MemoryState): Tokens {
  return {
    async create(row) {
      const tenant = state.tenants.get(row.tenant_id);
      if (!tenant) throw new Error(`no tenant ${row.tenant_id}`);
      const taken = [...tenant.tokens.values()].some((token) => token.token_id === row.token_id || token.hash === row.hash);
      if (taken) throw new Error(`token ${row.token_id} exists`);
      tenant.tokens.set(row.token_id, { role: null, label: '', expires_at: null, ...copy(row), revoked_at: null });
    },
    find: async (tenant_id, hash) => copy([...(state.tenants.get(tenant_id)?.tokens.values() ?? [])].find((token) => token.hash === hash)),
    get: async (tenant_id, token_id) => copy(state.tenants.get(tenant_id)?.tokens.get(token_id)),
    list: async (tenant_id) =>
      [...(state.tenants.get(tenant_id)?.tokens.values() ?? [])].sort((a, b) => a.created_at - b.created_at).map(copy),
    async revoke(tenant_id, token_id, at) {
      const tenant = state.tenants.get(tenant_id);
      const token = tenant?.tokens.get(token_id);
      if (!tenant || !token) return false;
      tenant.tokens.set(token_id, { ...token, revoked_at: token.revoked_at ?? at });
      return true;
    },
    async expire(tenant_id, token_id, at) {
      const tenant = state.tenants.get(tenant_id);
      const token = tenant?.tokens.get(token_id);
      if (!tenant || !token) return false;
      tenant.tokens.set(token_id, { ...token, expires_at: Math.min(token.expires_at ?? at, at) });
      return true;
    },
  };
}
