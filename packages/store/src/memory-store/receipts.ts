import type { Receipts } from '../store.js';
import { hasLane, type MemoryState } from './state.js';

export function memoryReceipts(state: MemoryState): Receipts {
  return {
    async owe({ tenant_id, device_id, chat_id, thread_id, message_id }) {
      const tenant = state.tenants.get(tenant_id);
      if (!hasLane(tenant, { chat_id, thread_id })) return;
      const owed = tenant.receipts.get(device_id) ?? new Map();
      if (!owed.has(message_id)) owed.set(message_id, { chat_id, thread_id, message_id });
      tenant.receipts.set(device_id, owed);
    },
    async take(tenant_id, device_id) {
      const receipts = state.tenants.get(tenant_id)?.receipts;
      const owed = [...(receipts?.get(device_id)?.values() ?? [])];
      receipts?.delete(device_id);
      return owed;
    },
  };
}
