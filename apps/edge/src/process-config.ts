import { MediaPlace } from '@iris/media';
import { PartConfig } from '@iris/runtime';
import { type Static, Type } from 'typebox';
import { EdgeConfig } from './config.js';

/** What an edge is told that is a process of its own. */
export const EdgeProcessConfig = Type.Object({
  ...PartConfig.properties,
  ...EdgeConfig.properties,
  stop_ms: Type.Integer({
    default: 25_000,
    minimum: 0,
    maximum: 3_600_000,
    description: 'milliseconds for stopping everything; longer than drain_ms',
  }),
  edge_host: Type.String({ default: '127.0.0.1', description: 'address for devices and agents' }),
  edge_port: Type.Integer({ default: 8080, minimum: 0, maximum: 65_535, description: 'their port; 0 takes a free one' }),
  edge_origins: Type.Array(Type.String(), {
    default: [],
    description: 'what an `Origin` header may say, such as https://app.example; none: the same host',
  }),
  trusted_proxies: Type.Array(Type.String(), { default: [], description: 'addresses and networks whose `X-Forwarded-For` is believed' }),
  proxy_protocol: Type.Boolean({
    default: false,
    description: 'whether trusted proxies say who the peer is in front of each connection (PROXY protocol, version 2)',
  }),
  tls_cert_file: Type.Optional(Type.String({ description: 'PEM file, to end TLS here; with tls_key_file' })),
  tls_key_file: Type.Optional(Type.String({ description: 'PEM file of the key' })),
  drain_ms: Type.Integer({
    default: 15_000,
    minimum: 0,
    maximum: 3_600_000,
    description: 'milliseconds over which sockets are closed when it stops',
  }),
  redis_url: Type.String({ minLength: 1, secret: true, description: 'redis://host:port' }),
  ...MediaPlace.properties,
  nats_url: Type.Array(Type.String(), { minItems: 1, secret: true, description: 'nats://host:port, several with commas' }),
});
export type EdgeProcessConfig = Static<typeof EdgeProcessConfig>;
