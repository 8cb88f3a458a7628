import { copy } from '../copy.js';
import type { Pairings } from '../store.js';
import type { MemoryState } from './state.js';

export function memoryPairings(state: MemoryState): Pairings {
  return {
    async create(row) {
      const tenant = state.tenants.get(row.tenant_id);
      if (!tenant) throw new Error(`no tenant ${row.tenant_id}`);
      for (const [hash, old] of tenant.pairings) if (old.used_by !== null || old.expires_at <= row.created_at) tenant.pairings.delete(hash);
      if ([...state.tenants.values()].some(({ pairings }) => pairings.has(row.code_hash))) throw new Error('the code exists');
      tenant.pairings.set(row.code_hash, { ...copy(row), used_by: null });
    },
    async use(code_hash, device_id, now) {
      for (const { pairings } of state.tenants.values()) {
        const row = pairings.get(code_hash);
        if (row === undefined || row.used_by !== null || row.expires_at <= now) continue;
        const used = { ...row, used_by: device_id };
        pairings.set(code_hash, used);
        return copy(used);
      }
      return undefined;
    },
  };
}
