import { type DeviceId, notFound } from '@iris/protocol';
import type { PushLedgerRow } from '@iris/store';
import type { Api, Routing } from '../control.js';
import { explanation } from '../explain.js';
import { DeviceParams, Explained, LedgerPage, LedgerQuery, PushSettings, TenantParams } from '../schemas.js';
import { change, look } from './admin-roles.js';

const pageDefault = 50;

/** `/v1/tenants/{tenant_id}/push`, and `…/devices/{device_id}/push`: what is pushed, and why it was or was not. */
export function pushRoutes(api: Api, { store, tenant, audit }: Routing): void {
  const tags = ['push'];

  api.get(
    '/v1/tenants/:tenant_id/push',
    { config: look, schema: { tags, summary: 'How much providers are told', params: TenantParams, response: { 200: PushSettings } } },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      return { content: await store.pushRules.content(tenant_id) };
    },
  );

  api.patch(
    '/v1/tenants/:tenant_id/push',
    { config: change, schema: { tags, summary: 'Change it', params: TenantParams, body: PushSettings, response: { 200: PushSettings } } },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { content } = request.body;
      await store.pushRules.setContent(tenant_id, content);
      await audit(request, tenant_id, 'push.set', `content=${content}`);
      return { content };
    },
  );

  api.get(
    '/v1/tenants/:tenant_id/devices/:device_id/push',
    {
      config: look,
      schema: {
        tags,
        summary: 'Decisions about a device, newest first',
        params: DeviceParams,
        querystring: LedgerQuery,
        response: { 200: LedgerPage },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const device_id = request.params.device_id as DeviceId;
      if ((await store.devices.get(tenant_id, device_id)) === undefined) throw notFound('device');
      const { cursor, limit } = request.query;
      const page = { limit: Number(limit ?? pageDefault), ...(cursor === undefined ? {} : { cursor: Number(cursor) }) };
      const rows = await store.pushLedger.explain(tenant_id, device_id, page);
      return { decisions: rows.map((row) => ({ ...shown(row), explanation: explanation(row, undefined) })) };
    },
  );

  api.get(
    '/v1/tenants/:tenant_id/devices/:device_id/push/:cursor',
    {
      config: look,
      schema: { tags, summary: 'Why a frame did, or did not, buzz', params: Explained.params, response: { 200: Explained.answer } },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const device_id = request.params.device_id as DeviceId;
      if ((await store.devices.get(tenant_id, device_id)) === undefined) throw notFound('device');
      const cursor = Number(request.params.cursor);
      const [[row], [frame]] = await Promise.all([
        store.pushLedger.explain(tenant_id, device_id, { cursor, limit: 1 }),
        store.pushFrames.get(tenant_id, [cursor]),
      ]);
      const decision = row?.cursor === cursor ? row : undefined;
      return { cursor, explanation: explanation(decision, frame), decision: decision === undefined ? null : shown(decision) };
    },
  );
}

const shown = ({ tenant_id: _, device_id: __, ...row }: PushLedgerRow) => row;
