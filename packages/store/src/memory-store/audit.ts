import { copy } from '../copy.js';
import type { Audit } from '../store.js';
import type { MemoryState } from './state.js';

export function memoryAudit(state: MemoryState): Audit {
  return {
    async write(row) {
      state.audit.push(copy(row));
    },
    list: async (tenant_id, limit) =>
      state.audit
        .filter((row) => row.tenant_id === tenant_id)
        .reverse()
        .slice(0, limit)
        .map(copy),
  };
}
