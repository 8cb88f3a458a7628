import { type DeviceId, notFound } from '@iris/protocol';
import type { Api, Routing } from '../control.js';
import { DeviceList, DeviceParams, TenantParams } from '../schemas.js';

/** `/v1/tenants/{tenant_id}/devices`: who has said hello. */
export function deviceRoutes(api: Api, { store, clock, announcer, tenant, audit }: Routing): void {
  const tags = ['devices'];

  api.get(
    '/v1/tenants/:tenant_id/devices',
    { schema: { tags, summary: 'Devices, also revoked ones', params: TenantParams, response: { 200: DeviceList } } },
    async (request) => {
      const { tenant_id } = await tenant(request.params.tenant_id);
      const devices = await store.devices.list(tenant_id);
      return {
        devices: devices.map(({ device_id, name, token_id, watermark, last_pushed_cursor, created_at, last_seen_at, revoked_at }) => ({
          device_id,
          name,
          token_id,
          watermark,
          last_pushed_cursor,
          created_at,
          last_seen_at,
          revoked_at,
        })),
      };
    },
  );

  api.delete(
    '/v1/tenants/:tenant_id/devices/:device_id',
    { schema: { tags, summary: 'Revoke a device and close its connection', params: DeviceParams } },
    async (request, reply) => {
      const { tenant_id } = await tenant(request.params.tenant_id);
      const device_id = request.params.device_id as DeviceId;
      if (!(await store.devices.revoke(tenant_id, device_id, clock.now()))) throw notFound('device');
      await audit(tenant_id, 'device.revoke', device_id);
      await announcer.announce({ kind: 'revoked', tenant_id, device_id });
      return reply.code(204).send();
    },
  );
}
