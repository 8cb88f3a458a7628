import { MediaPlace } from '@iris/media';
import { defaultQuotas, Quotas } from '@iris/protocol';
import { PartConfig, ReachConfig, SealingSecret } from '@iris/runtime';
import { type Static, Type } from 'typebox';

/** What the admin API is told. */
export const ControlConfig = Type.Object({
  ...Quotas.properties,
  admin_token: Type.String({ minLength: 16, secret: true, description: 'opens the admin API; at least 16 characters' }),
  oidc_issuer: Type.Optional(Type.String({ description: 'OpenID Connect issuer whose tokens open the admin API; with oidc_audience' })),
  oidc_audience: Type.Optional(Type.String({ description: 'what such a token must be for' })),
  oidc_client_id: Type.Optional(
    Type.String({ description: 'public client by which the docs page signs in (code flow with PKCE); default oidc_audience' }),
  ),
  oidc_role_claim: Type.String({ default: 'roles', description: 'claim that holds iris-owner, iris-admin or iris-read-only' }),
  public_url: Type.Optional(Type.String({ description: 'where apps connect, such as wss://gateway.example/ws; told when pairing' })),
  ...ReachConfig,
  sealing_secret: SealingSecret,
  trusted_proxies: Type.Array(Type.String(), { default: [], description: 'addresses and networks whose `X-Forwarded-For` is believed' }),
});
export type ControlConfig = Static<typeof ControlConfig>;

/** Every value as it is when nothing is set; the token has none. */
export const defaultControlConfig: Omit<ControlConfig, 'admin_token'> = {
  ...defaultQuotas,
  oidc_role_claim: 'roles',
  trusted_proxies: [],
  private_addresses: false,
  allow_hosts: [],
  allow_addresses: [],
  sealing_secret: [],
};

/** What the admin API is told that is a process of its own. */
export const ControlProcessConfig = Type.Object({
  ...PartConfig.properties,
  ...ControlConfig.properties,
  control_host: Type.String({ default: '127.0.0.1', description: 'address the admin API listens on' }),
  control_port: Type.Integer({ default: 8090, minimum: 0, maximum: 65_535, description: 'its port; 0 takes a free one' }),
  postgres_url: Type.String({ minLength: 1, secret: true, description: 'postgresql://user:password@host:port/database' }),
  migrate_url: Type.Optional(
    Type.String({ minLength: 1, secret: true, description: 'the same database as the role that owns the tables; default postgres_url' }),
  ),
  nats_url: Type.Array(Type.String(), { minItems: 1, secret: true, description: 'nats://host:port, several with commas' }),
  redis_url: Type.Optional(Type.String({ minLength: 1, secret: true, description: 'redis://host:port' })),
  ...MediaPlace.properties,
});
