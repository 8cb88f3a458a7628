import { limits, type MessageId, notFound, type TenantId, unsupported } from '@iris/protocol';
import type { Api, Routing } from '../control.js';
import { AuditList, AuditQuery, TenantParams, Trace, TraceParams, UsageList, UsageQuery } from '../schemas.js';
import { look, operators } from './admin-roles.js';

const day_ms = 24 * 60 * 60 * 1000;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** What happened: audit, usage, and the way of one message. */
export function insightRoutes(api: Api, { store, outbox, clock, tenant }: Routing): void {
  const tags = ['insight'];
  const events = async (tenant_id: TenantId | null, limit: string | undefined) => ({
    events: (await store.audit.list(tenant_id, limit === undefined ? 100 : Number(limit))).map(({ at, actor, action, subject }) => ({
      at,
      actor,
      action,
      subject,
    })),
  });

  api.get(
    '/v1/audit',
    {
      config: operators.look,
      schema: {
        tags,
        summary: 'What was done to no tenant in particular, newest first',
        querystring: AuditQuery,
        response: { 200: AuditList },
      },
    },
    async (request) => events(null, request.query.limit),
  );

  api.get(
    '/v1/tenants/:tenant_id/audit',
    {
      config: look,
      schema: { tags, summary: 'Who did what, newest first', params: TenantParams, querystring: AuditQuery, response: { 200: AuditList } },
    },
    async (request) => events((await tenant(request, request.params.tenant_id)).tenant_id, request.query.limit),
  );

  api.get(
    '/v1/tenants/:tenant_id/usage',
    {
      config: look,
      schema: {
        tags,
        summary: 'Messages, turns and files that were accepted on each day of UTC, whatever became of them since',
        params: TenantParams,
        querystring: UsageQuery,
        response: { 200: UsageList },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { to = dayOf(clock.now()) } = request.query;
      const { from = dayOf(Date.parse(to) - 29 * day_ms) } = request.query;
      if (Number.isNaN(Date.parse(from)) || Number.isNaN(Date.parse(to))) throw unsupported('from, to: no such day');
      if (Date.parse(to) - Date.parse(from) > 366 * day_ms) throw unsupported('from, to: more than 366 days');
      return { from, to, days: await store.usage.days(tenant_id, from, to) };
    },
  );

  api.get(
    '/v1/tenants/:tenant_id/messages/:message_id/trace',
    {
      config: look,
      schema: {
        tags,
        summary: 'What happened to one message, from acceptance to each device; never what it says',
        params: TraceParams,
        response: { 200: Trace },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const message_id = request.params.message_id as MessageId;
      const message = message_id.length > limits.id_length ? undefined : await store.messages.get(tenant_id, message_id);
      if (message === undefined) throw notFound('message');
      const { cursor, turn_id } = message;
      const started = `tn_${message_id.slice(2)}`;
      const [turn, devices, marks, pushes, reads] = await Promise.all([
        store.turns.get(tenant_id, (turn_id ?? started) as Parameters<typeof store.turns.get>[1]),
        store.devices.list(tenant_id),
        outbox?.devices(tenant_id).catch(() => undefined),
        cursor === null ? [] : store.pushLedger.of(tenant_id, [cursor]),
        store.reads.list(tenant_id),
      ]);
      return {
        message_id,
        chat_id: message.chat_id,
        thread_id: message.thread_id,
        role: message.role,
        accepted_at: message.ts,
        /** Null: its append is owed still. */
        cursor,
        from_device_id: message.device_id,
        turn:
          turn === undefined
            ? null
            : {
                turn_id: turn.turn_id,
                agent_id: turn.agent_id,
                state: turn.state,
                outcome: turn.outcome,
                attempt: turn.attempt,
                queued_at: turn.created_at,
                accepted_at: turn.accepted_at,
                ended_at: turn.ended_at,
              },
        devices: devices
          .filter(({ revoked_at }) => revoked_at === null)
          .map((device) => {
            const mark = marks?.find(({ device_id }) => device_id === device.device_id);
            const watermark = Math.max(device.watermark, mark?.watermark ?? 0);
            const push = pushes.find(({ device_id }) => device_id === device.device_id);
            const read = reads.find(
              (one) => one.device_id === device.device_id && one.chat_id === message.chat_id && one.thread_id === message.thread_id,
            );
            return {
              device_id: device.device_id,
              connected: mark?.connection_id !== undefined,
              watermark,
              reached: cursor !== null && watermark >= cursor,
              read: cursor !== null && read !== undefined && read.cursor >= cursor,
              last_seen_at: device.last_seen_at,
              push: push === undefined ? null : { state: push.state, why: push.why, provider: push.provider, sent_at: push.sent_at },
            };
          }),
      };
    },
  );
}
