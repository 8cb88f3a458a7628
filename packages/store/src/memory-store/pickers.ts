import { copy } from '../copy.js';
import type { PickerRow } from '../rows.js';
import type { Pickers } from '../store.js';
import { hasLane, type MemoryState } from './state.js';

export function memoryPickers(state: MemoryState): Pickers {
  return {
    async open(row) {
      const tenant = state.tenants.get(row.tenant_id);
      if (!hasLane(tenant, row) || tenant.pickers.has(row.picker_id)) return false;
      tenant.pickers.set(row.picker_id, copy(row));
      return true;
    },
    get: async (tenant_id, picker_id) => copy(state.tenants.get(tenant_id)?.pickers.get(picker_id)),
    these: async (tenant_id, picker_ids) =>
      picker_ids.flatMap((picker_id) => state.tenants.get(tenant_id)?.pickers.get(picker_id) ?? []).map(copy),
    list: async (tenant_id, turn_id) =>
      [...(state.tenants.get(tenant_id)?.pickers.values() ?? [])]
        .filter((row) => row.state === 'open' && (turn_id === undefined || row.turn_id === turn_id))
        .sort((a, b) => a.created_at - b.created_at)
        .map(copy),
    async close(tenant_id, picker_id, { state: closed, value, answered_by }) {
      const tenant = state.tenants.get(tenant_id);
      const row = tenant?.pickers.get(picker_id);
      if (!tenant || !row) return undefined;
      if (row.state !== 'open') return answered_by !== null && row.answered_by === answered_by ? 'won' : 'lost';
      tenant.pickers.set(picker_id, { ...row, state: closed, value: copy(value), answered_by });
      return 'won';
    },
    async expired(now, { limit, after }) {
      const order = (a: PickerRow, b: PickerRow): number =>
        (a.expires_at ?? 0) - (b.expires_at ?? 0) ||
        (a.tenant_id < b.tenant_id || (a.tenant_id === b.tenant_id && a.picker_id < b.picker_id) ? -1 : 1);
      const due = (row: PickerRow): boolean =>
        row.state === 'open' &&
        row.expires_at !== null &&
        row.expires_at <= now &&
        (after === undefined || (row.picker_id !== after.picker_id && order(row, after) > 0));
      return [...state.tenants.values()]
        .flatMap((tenant) => [...tenant.pickers.values()].filter(due))
        .sort(order)
        .slice(0, limit)
        .map(copy);
    },
  };
}
