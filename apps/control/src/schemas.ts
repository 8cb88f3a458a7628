import { limits, Quotas } from '@iris/protocol';
import { Type } from 'typebox';

export const strict = { additionalProperties: false } as const;
export const id = (description: string) => Type.String({ minLength: 1, maxLength: limits.id_length, description });
export const time = Type.Union([Type.Integer(), Type.Null()], { description: 'milliseconds since 1970, UTC' });
export const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
export const name = (description = '1 to 128 characters') => Type.String({ minLength: 1, maxLength: 512, description });
const limit = Type.Optional(Type.String({ pattern: '^([1-9]\\d{0,2}|1000)$', description: '1 to 1000, default 100' }));
const label = Type.String({ maxLength: 128, description: 'what it is for' });
const day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'a day of UTC' });

export const ErrorBody = Type.Object({
  error: Type.Object({
    code: Type.String({ description: 'one of the six codes of the wire protocol' }),
    message: Type.String(),
    retry_after_ms: Type.Optional(Type.Integer({ description: 'with `rate_limited`' })),
  }),
});

export const TenantParams = Type.Object({ tenant_id: id('tenant') });
export const TokenParams = Type.Object({ tenant_id: id('tenant'), token_id: id('token') });
export const DeviceParams = Type.Object({ tenant_id: id('tenant'), device_id: id('device, as the app named it') });
export const TraceParams = Type.Object({ tenant_id: id('tenant'), message_id: id('message') });
export const PageQuery = Type.Object({ after: Type.Optional(id('the last tenant of the page before')), limit }, strict);
export const AuditQuery = Type.Object({ limit }, strict);
export const PushQuery = Type.Object(
  { limit, before: Type.Optional(Type.String({ pattern: '^\\d{1,16}$', description: 'cursors below this one' })) },
  strict,
);
export const UsageQuery = Type.Object({ from: Type.Optional(day), to: Type.Optional(day) }, strict);

export const NewTenant = Type.Object({ name: name() }, strict);
export const TenantState = Type.Object({ state: Type.Union([Type.Literal('active'), Type.Literal('suspended')]) }, strict);
const kind = Type.Union([Type.Literal('device'), Type.Literal('agent'), Type.Literal('admin')]);
const role = Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('read-only')]);
export const NewToken = Type.Object(
  {
    kind,
    device_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: limits.device_id_length, description: 'opens this device only; for kind `device`' }),
    ),
    agent_id: Type.Optional(id('default: the default agent of the tenant; for kind `agent`')),
    role: Type.Optional(role),
    label: Type.Optional(label),
    expires_at: Type.Optional(Type.Integer({ minimum: 0, description: 'from then on it opens nothing; milliseconds since 1970' })),
  },
  strict,
);
export const Rotation = Type.Object(
  {
    overlap_ms: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 90 * 24 * 3600 * 1000, description: 'how long the old one still opens; default a day' }),
    ),
  },
  strict,
);
export const NewPairing = Type.Object(
  {
    label: Type.Optional(label),
    valid_ms: Type.Optional(Type.Integer({ minimum: 1_000, maximum: 24 * 3600 * 1000, description: 'default ten minutes' })),
  },
  strict,
);
export const PairingUse = Type.Object(
  {
    code: Type.String({ minLength: 1, maxLength: 64, description: 'as it was shown; case and dashes do not matter' }),
    device_id: Type.String({ minLength: 1, maxLength: limits.device_id_length, description: 'what the app will call itself in `hello`' }),
  },
  strict,
);
export const DeviceChange = Type.Object({ label: Type.Union([name(), Type.Null()]) }, strict);
export const SomeQuotas = Type.Object(Type.Partial(Quotas).properties, { ...strict, minProperties: 1 });

export const Tenant = Type.Object({
  tenant_id: Type.String(),
  name: Type.String(),
  state: Type.String(),
  quotas: Quotas,
  created_at: Type.Integer(),
});
export const TenantCreated = Type.Object({
  tenant_id: Type.String(),
  device_token: Type.String({ description: 'shown once: only its hash is kept' }),
  agent_token: Type.String({ description: 'shown once: only its hash is kept' }),
  agent_id: Type.String(),
});
export const TenantPage = Type.Object({ tenants: Type.Array(Tenant) });
export const TokenCreated = Type.Object({ token_id: Type.String(), token: Type.String({ description: 'shown once' }) });
export const TokenList = Type.Object({
  tokens: Type.Array(
    Type.Object({
      token_id: Type.String(),
      kind: Type.String(),
      device_id: nullable('opens this device only'),
      agent_id: nullable('opens this agent'),
      role: nullable('of an administrator'),
      label,
      created_at: Type.Integer(),
      expires_at: time,
      revoked_at: time,
    }),
  ),
});
export const PairingCreated = Type.Object({
  code: Type.String({ description: 'shown once; good for one device' }),
  link: Type.String({ description: 'the same for a QR code' }),
  expires_at: Type.Integer(),
});
export const Paired = Type.Object({
  tenant_id: Type.String(),
  token_id: Type.String(),
  token: Type.String({ description: 'opens this device only' }),
  gateway: Type.Optional(Type.String({ description: 'where to connect' })),
});
const deviceFields = {
  device_id: Type.String(),
  name: Type.String({ description: 'as the app says it' }),
  label: nullable('as an operator said it'),
  token_id: Type.String(),
  watermark: Type.Integer({ description: 'every durable frame up to here is known to have reached it' }),
  last_pushed_cursor: Type.Integer(),
  created_at: Type.Integer(),
  last_seen_at: Type.Integer(),
  revoked_at: time,
};
export const Device = Type.Object(deviceFields);
export const DeviceList = Type.Object({
  devices: Type.Array(
    Type.Object({
      ...deviceFields,
      connected: Type.Boolean(),
      push: Type.Array(Type.String(), { description: 'kinds of push that it has registered for' }),
    }),
  ),
});
const push = {
  state: Type.String(),
  why: nullable('why it was not sent'),
  provider: nullable('who carried it'),
  sent_at: time,
};
export const PushList = Type.Object({
  pushes: Type.Array(
    Type.Object({
      ...push,
      cursor: Type.Integer(),
      class: Type.String(),
      answer: nullable('what the provider said'),
      attempts: Type.Integer(),
      decided_at: Type.Integer(),
      withdrawn_at: time,
    }),
  ),
});
export const AuditList = Type.Object({
  events: Type.Array(Type.Object({ at: Type.Integer(), actor: Type.String(), action: Type.String(), subject: Type.String() })),
});
export const UsageList = Type.Object({
  from: day,
  to: day,
  days: Type.Array(
    Type.Object({
      day,
      user_messages: Type.Integer(),
      agent_messages: Type.Integer(),
      turns: Type.Integer(),
      media_files: Type.Integer(),
      media_bytes: Type.Integer(),
    }),
  ),
});
export const Trace = Type.Object({
  message_id: Type.String(),
  chat_id: Type.String(),
  thread_id: nullable('null in the channel itself'),
  role: Type.String(),
  accepted_at: Type.Integer(),
  cursor: Type.Union([Type.Integer(), Type.Null()], { description: 'its place; null while its append is owed' }),
  from_device_id: nullable('who sent it'),
  turn: Type.Union([
    Type.Null(),
    Type.Object({
      turn_id: Type.String(),
      agent_id: nullable('whom it was given to'),
      state: Type.String(),
      outcome: nullable('of an ended one'),
      attempt: Type.Integer(),
      queued_at: Type.Integer(),
      accepted_at: time,
      ended_at: time,
    }),
  ]),
  devices: Type.Array(
    Type.Object({
      device_id: Type.String(),
      connected: Type.Boolean(),
      watermark: Type.Integer(),
      reached: Type.Boolean({ description: 'the device has confirmed it' }),
      read: Type.Boolean({ description: 'the device has said that it was read' }),
      last_seen_at: Type.Integer(),
      push: Type.Union([Type.Null(), Type.Object(push)]),
    }),
  ),
});
const perTable = Type.Record(Type.String(), Type.Integer());
export const Receipt = Type.Object({
  tenant_id: Type.String(),
  deleted_at: Type.Integer(),
  stores: Type.Object({
    sockets: Type.Object({ told: Type.Literal(true) }, { description: 'every edge was told to close what the tenant has open' }),
    outbox: Type.Object({ removed: Type.Boolean() }, { description: 'order, replay, watermarks, what was going on' }),
    media: Type.Object({ removed: Type.Boolean(), files: Type.Integer() }),
    rows: Type.Object({ removed: perTable, left: perTable }, { description: 'rows of each table, before and after' }),
  }),
});
export const Imported = Type.Object({
  tenant_id: Type.String(),
  device_token: Type.String({ description: 'shown once' }),
  agent_token: Type.String({ description: 'shown once; of the default agent' }),
  waiting_backends: Type.Array(Type.String(), { description: 'agents whose backend serves nobody until it is set again, with its key' }),
  rows: perTable,
  files: Type.Integer(),
});

export const PushSettings = Type.Object(
  {
    content: Type.Union([Type.Literal('full'), Type.Literal('title'), Type.Literal('ids'), Type.Literal('encrypted')], {
      description: 'what providers may read of a push; `encrypted`: only the device can',
    }),
  },
  strict,
);
const cursorText = Type.String({ pattern: '^\\d{1,16}$' });
export const LedgerQuery = Type.Object(
  {
    cursor: Type.Optional(cursorText),
    limit: Type.Optional(Type.String({ pattern: '^([1-9]\\d{0,2}|1000)$', description: '1 to 1000, default 50' })),
  },
  strict,
);
const decision = {
  cursor: Type.Integer(),
  class: Type.String(),
  chat_id: Type.String(),
  thread_id: nullable('null in a flat lane'),
  state: Type.String({ description: 'pending, sending, sent, skipped, failed or collapsed' }),
  why: nullable('why not, or what it waits for'),
  with_cursor: Type.Union([Type.Integer(), Type.Null()], { description: 'the frame whose push stands for this one' }),
  covers: Type.Integer({ description: 'the highest cursor that the push stands for' }),
  provider: nullable('who carried it'),
  answer: nullable('what the provider said last'),
  attempts: Type.Integer(),
  due_at: Type.Integer(),
  decided_at: Type.Integer(),
  sent_at: time,
  withdrawn_at: time,
};
export const LedgerPage = Type.Object({ decisions: Type.Array(Type.Object({ ...decision, explanation: Type.String() })) });
export const Explained = {
  params: Type.Object({ ...DeviceParams.properties, cursor: cursorText }),
  answer: Type.Object({
    cursor: Type.Integer(),
    explanation: Type.String(),
    decision: Type.Union([Type.Object(decision), Type.Null()]),
  }),
};
