import { PartConfig } from '@iris/runtime';
import { type Static, Type } from 'typebox';
import { SessionConfig } from './config.js';

/** What a session instance is told that is a process of its own. */
export const SessionProcessConfig = Type.Object({
  ...PartConfig.properties,
  ...SessionConfig.properties,
  stop_ms: Type.Integer({
    default: 15_000,
    minimum: 0,
    maximum: 3_600_000,
    description: 'milliseconds for stopping everything; longer than finish_ms',
  }),
  finish_ms: Type.Integer({
    default: 10_000,
    minimum: 0,
    maximum: 3_600_000,
    description: 'milliseconds for finishing what it holds when it stops',
  }),
  postgres_url: Type.String({ minLength: 1, secret: true, description: 'postgresql://user:password@host:port/database' }),
  postgres_pool: Type.Integer({ default: 10, minimum: 1, maximum: 1_000, description: 'connections to Postgres at most' }),
  redis_url: Type.String({ minLength: 1, secret: true, description: 'redis://host:port' }),
  nats_url: Type.Array(Type.String(), { minItems: 1, secret: true, description: 'nats://host:port, several with commas' }),
});
export type SessionProcessConfig = Static<typeof SessionProcessConfig>;
