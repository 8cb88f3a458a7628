import type { TenantId } from '@iris/protocol';
import { copy } from '../copy.js';
import type { MediaRow } from '../rows.js';
import type { Content, MediaRows } from '../store.js';
import { unused } from './lane-removal.js';
import type { MemoryState, TenantState } from './state.js';
import { goneMedia } from './usage.js';

const day_ms = 24 * 3_600_000;

export function memoryMediaRows(state: MemoryState): MediaRows {
  const named = (tenant: TenantState, object_id: string | null) =>
    [...tenant.media.values()].some(({ row }) => row.object_id === object_id);
  const put = (tenant: TenantState, row: MediaRow, attached_by: string | null = null) =>
    void tenant.media.set(row.media_id, { row: copy(row), attached_by });

  /** Nothing names it any more. */
  function loosen(tenant: TenantState, object_id: MediaRow['object_id'], size: number): void {
    if (object_id === null || named(tenant, object_id)) return;
    const object = tenant.objects.get(object_id) ?? { state: 'removing', size, sha256: '' };
    tenant.objects.set(object_id, { ...object, state: 'removing' });
  }
  /** The object that stands for this content. */
  function keep(tenant: TenantState, { object_id, size, sha256 }: Content): Content['object_id'] {
    for (const [id, object] of tenant.objects) {
      if (object.state !== 'stored' || object.sha256 !== sha256) continue;
      if (id !== object_id) tenant.objects.set(object_id, { state: 'removing', size, sha256 });
      return id;
    }
    tenant.objects.set(object_id, { state: 'stored', size, sha256 });
    return object_id;
  }
  function drop(tenant: TenantState, row: MediaRow): void {
    goneMedia(tenant, row);
    tenant.media.delete(row.media_id);
    loosen(tenant, row.object_id, row.size);
  }
  const storedBytes = (tenant: TenantState | undefined): number => {
    let bytes = 0;
    for (const object of tenant?.objects.values() ?? []) if (object.state === 'stored') bytes += object.size;
    for (const { row } of tenant?.media.values() ?? []) if (row.state === 'uploading') bytes += row.size;
    return bytes;
  };

  return {
    async begin(row, { stored_bytes, day_bytes }) {
      const tenant = state.tenants.get(row.tenant_id);
      if (tenant === undefined) return 'no_tenant';
      if (tenant.media.has(row.media_id)) return 'begun';
      const before = [...tenant.media.values()].filter(
        (one) =>
          one.row.state === 'uploading' &&
          row.media_ref !== null &&
          one.row.device_id === row.device_id &&
          one.row.media_ref === row.media_ref,
      );
      const freed = before.reduce((sum, one) => sum + one.row.size, 0);
      if (storedBytes(tenant) - freed + row.size > stored_bytes) return 'full';
      const day = Math.floor(row.created_at / day_ms);
      const today = (tenant.days.get(day) ?? 0) + row.size;
      if (today > day_bytes) return 'day_full';
      tenant.days.set(day, today);
      for (const one of before) drop(tenant, one.row);
      put(tenant, row);
      return 'begun';
    },
    async restart(tenant_id, media_id, object_id) {
      const tenant = state.tenants.get(tenant_id);
      const row = tenant?.media.get(media_id)?.row;
      if (tenant === undefined || row?.state !== 'uploading') return false;
      put(tenant, { ...row, object_id });
      loosen(tenant, row.object_id, row.size);
      return true;
    },
    async complete(tenant_id, media_id, content) {
      const tenant = state.tenants.get(tenant_id);
      const row = tenant?.media.get(media_id)?.row;
      if (tenant === undefined || row === undefined || row.state === 'unused') return undefined;
      if (row.state !== 'uploading') return copy(row);
      if (row.object_id !== content.object_id) return undefined;
      const { size, sha256 } = content;
      const done: MediaRow = { ...row, state: 'uploaded', object_id: keep(tenant, content), size, sha256, uploaded_sha256: sha256 };
      put(tenant, done);
      return copy(done);
    },
    async insert(row, content) {
      const tenant = state.tenants.get(row.tenant_id);
      if (tenant === undefined || tenant.media.has(row.media_id)) return false;
      put(tenant, { ...row, object_id: keep(tenant, content) });
      return true;
    },
    get: async (tenant_id, media_id) => copy(state.tenants.get(tenant_id)?.media.get(media_id)?.row),
    async byRef(tenant_id, device_id, media_ref) {
      const found = [...(state.tenants.get(tenant_id)?.media.values() ?? [])].filter(
        ({ row }) => row.device_id === device_id && row.media_ref === media_ref,
      );
      return copy(found.at(-1)?.row);
    },
    async describe(tenant_id, media_id, { kind, mime, details }, content) {
      const tenant = state.tenants.get(tenant_id);
      const row = tenant?.media.get(media_id)?.row;
      if (tenant === undefined || row === undefined || row.state === 'uploading' || row.state === 'unused') return undefined;
      const stored = content === undefined ? {} : { object_id: keep(tenant, content), size: content.size, sha256: content.sha256 };
      const next: MediaRow = { ...row, kind, mime, details, processed: true, ...stored };
      tenant.media.set(media_id, { ...tenant.media.get(media_id)!, row: copy(next) });
      if (next.object_id !== row.object_id) loosen(tenant, row.object_id, row.size);
      return copy(next);
    },
    async attach(tenant_id, media_ids, by) {
      const media = state.tenants.get(tenant_id)?.media;
      const all = [...new Set(media_ids)].map((id) => media?.get(id));
      const free = all.every((one) => one && (one.row.state === 'uploaded' || (by !== undefined && one.attached_by === by)));
      if (!free) return false;
      for (const one of all) if (one) media?.set(one.row.media_id, { row: { ...one.row, state: 'attached' }, attached_by: by ?? null });
      return true;
    },
    async show(tenant_id, media_ids, as) {
      const media = state.tenants.get(tenant_id)?.media;
      const all = [...new Set(media_ids)].map((id) => media?.get(id));
      if (!all.every((one) => one && ['uploaded', 'offered', 'attached'].includes(one.row.state))) return false;
      for (const one of all)
        if (one && one.row.state !== 'attached') media?.set(one.row.media_id, { ...one, row: { ...one.row, state: as } });
      return true;
    },
    async remove(tenant_id, media_ids) {
      const tenant = state.tenants.get(tenant_id);
      if (tenant === undefined) return;
      for (const id of unused(tenant, media_ids)) {
        const row = tenant.media.get(id)?.row;
        if (row !== undefined) drop(tenant, row);
      }
    },
    async stale({ loose_before, offered_before, limit }) {
      const is = ({ state: at, created_at }: MediaRow): boolean =>
        at === 'unused' ||
        ((at === 'uploading' || at === 'uploaded') && created_at < loose_before) ||
        (at === 'offered' && created_at < offered_before);
      const found = [...state.tenants.values()].flatMap(({ media }) => [...media.values()].map(({ row }) => row).filter(is));
      return found
        .sort((a, b) => a.created_at - b.created_at)
        .slice(0, limit)
        .map(({ tenant_id, media_id }) => ({ tenant_id, media_id }));
    },
    async removing(limit) {
      const all = [...state.tenants].flatMap(([tenant_id, { objects }]) =>
        [...objects].filter(([, object]) => object.state === 'removing').map(([object_id]) => ({ tenant_id, object_id })),
      );
      return all.slice(0, limit);
    },
    removed: async (tenant_id, object_id) => {
      const objects = state.tenants.get(tenant_id)?.objects;
      if (objects?.get(object_id)?.state === 'removing') objects.delete(object_id);
    },
    storedBytes: async (tenant_id: TenantId) => storedBytes(state.tenants.get(tenant_id)),
  };
}
