import { laneKey } from '@iris/protocol';
import { copy } from '../copy.js';
import type { Reads } from '../store.js';
import { hasLane, type MemoryState } from './state.js';

export function memoryReads(state: MemoryState): Reads {
  return {
    async advance(row) {
      const tenant = state.tenants.get(row.tenant_id);
      if (!hasLane(tenant, row)) return false;
      const key = JSON.stringify([row.device_id, laneKey(row)]);
      const old = tenant.reads.get(key);
      if (old && old.cursor > row.cursor) return false;
      tenant.reads.set(key, copy(row));
      return true;
    },
    list: async (tenant_id) => [...(state.tenants.get(tenant_id)?.reads.values() ?? [])].map(copy),
  };
}
