import { copy } from '../copy.js';
import type { MediaRows } from '../store.js';
import type { MemoryState } from './state.js';

export function memoryMediaRows(state: MemoryState): MediaRows {
  return {
    async insert(row) {
      const media = state.tenants.get(row.tenant_id)?.media;
      if (!media || media.has(row.media_id)) return false;
      media.set(row.media_id, { row: copy(row), attached_by: null });
      return true;
    },
    get: async (tenant_id, media_id) => copy(state.tenants.get(tenant_id)?.media.get(media_id)?.row),
    async byRef(tenant_id, device_id, media_ref) {
      const named = [...(state.tenants.get(tenant_id)?.media.values() ?? [])].filter(
        ({ row }) => row.device_id === device_id && row.media_ref === media_ref,
      );
      return copy(named.at(-1)?.row);
    },
    async setDetails(tenant_id, media_id, details, mime) {
      const media = state.tenants.get(tenant_id)?.media;
      const old = media?.get(media_id);
      if (!media || !old) return false;
      media.set(media_id, { ...old, row: { ...old.row, details: copy(details), mime: mime ?? old.row.mime } });
      return true;
    },
    async attach(tenant_id, media_ids, by) {
      const media = state.tenants.get(tenant_id)?.media;
      const all = [...new Set(media_ids)].map((id) => media?.get(id));
      const free = all.every((one) => one && (one.row.state === 'uploaded' || (by !== undefined && one.attached_by === by)));
      if (!free) return false;
      for (const one of all) if (one) media?.set(one.row.media_id, { row: { ...one.row, state: 'attached' }, attached_by: by ?? null });
      return true;
    },
    async remove(tenant_id, media_ids) {
      for (const id of media_ids) state.tenants.get(tenant_id)?.media.delete(id);
    },
  };
}
