import type { Outbox } from '@iris/outbox';
import type { ConnectionId, DeviceId, EdgeId, TenantId } from '@iris/protocol';

export interface Place {
  readonly edge_id: EdgeId;
  readonly connection_id: ConnectionId;
}

/** Where devices are connected now: what passed through here, else what the outbox knows. */
export interface Presence {
  came(tenant_id: TenantId, device_id: DeviceId, place: Place): void;
  went(tenant_id: TenantId, device_id: DeviceId, connection_id: ConnectionId): void;
  /** Its live connection; undefined when it has none. */
  of(tenant_id: TenantId, device_id: DeviceId): Promise<Place | undefined>;
  forget(tenant_id: TenantId): void;
}

const goneMax = 10_000;

export function createPresence({ outbox }: { outbox: Outbox }): Presence {
  const here = new Map<TenantId, Map<DeviceId, Place>>();
  /** The outbox hears of a goodbye a little later. The newest are enough. */
  const gone = new Set<ConnectionId>();
  return {
    came(tenant_id, device_id, place) {
      const devices = here.get(tenant_id) ?? new Map<DeviceId, Place>();
      here.set(tenant_id, devices.set(device_id, place));
    },
    went(tenant_id, device_id, connection_id) {
      gone.add(connection_id);
      for (const oldest of gone) {
        if (gone.size <= goneMax) break;
        gone.delete(oldest);
      }
      const devices = here.get(tenant_id);
      if (devices?.get(device_id)?.connection_id !== connection_id) return;
      devices.delete(device_id);
      if (devices.size === 0) here.delete(tenant_id);
    },
    async of(tenant_id, device_id) {
      const place = here.get(tenant_id)?.get(device_id);
      if (place !== undefined) return place;
      const found = (await outbox.devices(tenant_id)).find((device) => device.device_id === device_id);
      return found?.edge_id === undefined || found.connection_id === undefined || gone.has(found.connection_id)
        ? undefined
        : { edge_id: found.edge_id, connection_id: found.connection_id };
    },
    forget: (tenant_id) => void here.delete(tenant_id),
  };
}
