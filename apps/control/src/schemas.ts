import { limits, Quotas } from '@iris/protocol';
import { Type } from 'typebox';

const strict = { additionalProperties: false } as const;
const id = (description: string) => Type.String({ minLength: 1, maxLength: limits.id_length, description });
const time = Type.Union([Type.Integer(), Type.Null()], { description: 'milliseconds since 1970, UTC' });
const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const ErrorBody = Type.Object({
  error: Type.Object({ code: Type.String({ description: 'one of the six codes of the wire protocol' }), message: Type.String() }),
});

export const TenantParams = Type.Object({ tenant_id: id('tenant') });
export const TokenParams = Type.Object({ tenant_id: id('tenant'), token_id: id('token') });
export const DeviceParams = Type.Object({ tenant_id: id('tenant'), device_id: id('device, as the app named it') });
export const PageQuery = Type.Object(
  {
    after: Type.Optional(id('the last tenant of the page before')),
    limit: Type.Optional(Type.String({ pattern: '^([1-9]\\d{0,2}|1000)$', description: '1 to 1000, default 100' })),
  },
  strict,
);

export const NewTenant = Type.Object({ name: Type.String({ minLength: 1, maxLength: 512, description: '1 to 128 characters' }) }, strict);
export const NewToken = Type.Object(
  {
    kind: Type.Union([Type.Literal('device'), Type.Literal('agent')]),
    device_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: limits.device_id_length, description: 'opens this device only; for kind `device`' }),
    ),
    agent_id: Type.Optional(id('default: the default agent of the tenant; for kind `agent`')),
  },
  strict,
);
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
      created_at: Type.Integer(),
      revoked_at: time,
    }),
  ),
});
export const DeviceList = Type.Object({
  devices: Type.Array(
    Type.Object({
      device_id: Type.String(),
      name: Type.String(),
      token_id: Type.String(),
      watermark: Type.Integer({ description: 'every durable frame up to here is known to have reached it' }),
      last_pushed_cursor: Type.Integer(),
      created_at: Type.Integer(),
      last_seen_at: Type.Integer(),
      revoked_at: time,
    }),
  ),
});
