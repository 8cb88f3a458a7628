import { Quotas } from '@iris/protocol';
import { PartConfig } from '@iris/runtime';
import { type Static, Type } from 'typebox';

/** What the admin API is told. */
export const ControlConfig = Type.Object({
  ...Quotas.properties,
  admin_token: Type.String({ minLength: 16, secret: true, description: 'opens the admin API; at least 16 characters' }),
});
export type ControlConfig = Static<typeof ControlConfig>;

/** What the admin API is told that is a process of its own. */
export const ControlProcessConfig = Type.Object({
  ...PartConfig.properties,
  ...ControlConfig.properties,
  control_host: Type.String({ default: '127.0.0.1', description: 'address the admin API listens on' }),
  control_port: Type.Integer({ default: 8090, minimum: 0, maximum: 65_535, description: 'its port; 0 takes a free one' }),
  postgres_url: Type.String({ minLength: 1, secret: true, description: 'postgresql://user:password@host:port/database' }),
  nats_url: Type.Array(Type.String(), { minItems: 1, secret: true, description: 'nats://host:port, several with commas' }),
});
