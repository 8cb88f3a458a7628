import { type DeviceId, notFound } from '@iris/protocol';
import type { DeviceRow } from '@iris/store';
import type { Api, Routing } from '../control.js';
import { nameOf } from '../names.js';
import { Device, DeviceChange, DeviceList, DeviceParams, PushList, PushQuery, TenantParams } from '../schemas.js';
import { change, look } from './admin-roles.js';

/** `/v1/tenants/{tenant_id}/devices`: who has said hello, and what was pushed to them. */
export function deviceRoutes(api: Api, { store, outbox, clock, announcer, log, tenant, audit }: Routing): void {
  const tags = ['devices'];
  /** The outbox's word is fresh; rows are what is left when it is away. */
  const fresh = async (tenant_id: DeviceRow['tenant_id']) => {
    try {
      return new Map((await outbox?.devices(tenant_id))?.map((one) => [one.device_id, one]));
    } catch (error) {
      log.warn('control.outbox_away', { error });
      return new Map<DeviceId, never>();
    }
  };

  api.get(
    '/v1/tenants/:tenant_id/devices',
    { config: look, schema: { tags, summary: 'Devices, also revoked ones', params: TenantParams, response: { 200: DeviceList } } },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const [devices, known, targets] = await Promise.all([
        store.devices.list(tenant_id),
        fresh(tenant_id),
        store.pushTargets.list(tenant_id),
      ]);
      return {
        devices: devices.map((row) => ({
          ...shown(row),
          watermark: Math.max(row.watermark, known.get(row.device_id)?.watermark ?? 0),
          connected: known.get(row.device_id)?.connection_id !== undefined,
          push: targets.filter(({ device_id }) => device_id === row.device_id).map(({ kind }) => kind),
        })),
      };
    },
  );

  api.patch(
    '/v1/tenants/:tenant_id/devices/:device_id',
    {
      config: change,
      schema: {
        tags,
        summary: 'Give a device a name; null gives it up',
        params: DeviceParams,
        body: DeviceChange,
        response: { 200: Device },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { label } = request.body;
      const device_id = request.params.device_id as DeviceId;
      const row = await store.devices.setLabel(tenant_id, device_id, label === null ? null : nameOf(label));
      if (row === undefined) throw notFound('device');
      await audit(request, tenant_id, 'device.rename', device_id);
      return shown(row);
    },
  );

  api.delete(
    '/v1/tenants/:tenant_id/devices/:device_id',
    { config: change, schema: { tags, summary: 'Revoke a device and close its connection', params: DeviceParams } },
    async (request, reply) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const device_id = request.params.device_id as DeviceId;
      if (!(await store.devices.revoke(tenant_id, device_id, clock.now()))) throw notFound('device');
      await audit(request, tenant_id, 'device.revoke', device_id);
      await announcer.announce({ kind: 'revoked', tenant_id, device_id });
      return reply.code(204).send();
    },
  );

  api.get(
    '/v1/tenants/:tenant_id/devices/:device_id/pushes',
    {
      config: look,
      schema: {
        tags,
        summary: 'What was decided about pushing to a device, newest first, and why',
        params: DeviceParams,
        querystring: PushQuery,
        response: { 200: PushList },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const device_id = request.params.device_id as DeviceId;
      if ((await store.devices.get(tenant_id, device_id)) === undefined) throw notFound('device');
      const { limit, before } = request.query;
      const rows = await store.pushLedger.explain(tenant_id, device_id, {
        limit: limit === undefined ? 100 : Number(limit),
        ...(before === undefined ? {} : { cursor: Number(before) - 1 }),
      });
      return {
        pushes: rows.map(({ cursor, class: kind, state, why, provider, answer, attempts, decided_at, sent_at, withdrawn_at }) => ({
          cursor,
          class: kind,
          state,
          why,
          provider,
          answer,
          attempts,
          decided_at,
          sent_at,
          withdrawn_at,
        })),
      };
    },
  );

  const shown = ({ device_id, name, label, token_id, watermark, last_pushed_cursor, created_at, last_seen_at, revoked_at }: DeviceRow) => ({
    device_id,
    name,
    label,
    token_id,
    watermark,
    last_pushed_cursor,
    created_at,
    last_seen_at,
    revoked_at,
  });
}
