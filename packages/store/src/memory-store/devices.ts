import { copy } from '../copy.js';
import type { DeviceRow } from '../rows.js';
import type { Devices } from '../store.js';
import type { MemoryState } from './state.js';

export function memoryDevices(state: MemoryState): Devices {
  return {
    async hello({ tenant_id, device_id, name, caps, token_id, at, max }) {
      const tenant = state.tenants.get(tenant_id);
      if (!tenant) throw new Error(`no tenant ${tenant_id}`);
      const old = tenant.devices.get(device_id);
      if (old && old.revoked_at !== null) return 'revoked';
      if (!old && [...tenant.devices.values()].filter((device) => device.revoked_at === null).length >= max) return 'over_quota';
      const row: DeviceRow = {
        ...(old ?? { tenant_id, device_id, watermark: 0, last_pushed_cursor: 0, created_at: at, revoked_at: null, label: null }),
        name,
        caps: copy(caps),
        token_id,
        last_seen_at: at,
      };
      tenant.devices.set(device_id, row);
      return { row: copy(row), created: old === undefined };
    },
    get: async (tenant_id, device_id) => copy(state.tenants.get(tenant_id)?.devices.get(device_id)),
    list: async (tenant_id) =>
      [...(state.tenants.get(tenant_id)?.devices.values() ?? [])].sort((a, b) => a.created_at - b.created_at).map(copy),
    async confirm(marks) {
      for (const { tenant_id, device_id, cursor, at } of marks) {
        const tenant = state.tenants.get(tenant_id);
        const device = tenant?.devices.get(device_id);
        if (!tenant || !device) continue;
        tenant.devices.set(device_id, {
          ...device,
          watermark: Math.max(device.watermark, cursor),
          last_seen_at: Math.max(device.last_seen_at, at),
        });
      }
    },
    async setLabel(tenant_id, device_id, label) {
      const tenant = state.tenants.get(tenant_id);
      const device = tenant?.devices.get(device_id);
      if (!tenant || !device) return undefined;
      const row = { ...device, label };
      tenant.devices.set(device_id, row);
      return copy(row);
    },
    async revoke(tenant_id, device_id, at) {
      const tenant = state.tenants.get(tenant_id);
      const device = tenant?.devices.get(device_id);
      if (!tenant || !device) return false;
      tenant.devices.set(device_id, { ...device, revoked_at: device.revoked_at ?? at });
      return true;
    },
  };
}
