import { MediaPlace } from '@iris/media';
import { PartConfig } from '@iris/runtime';
import { type Static, Type } from 'typebox';
import { WorkerConfig } from './config.js';

/** What a worker is told that is a process of its own. */
export const WorkerProcessConfig = Type.Object({
  ...PartConfig.properties,
  ...WorkerConfig.properties,
  postgres_url: Type.String({ minLength: 1, secret: true, description: 'postgresql://user:password@host:port/database' }),
  postgres_pool: Type.Integer({ default: 5, minimum: 1, maximum: 1_000, description: 'connections to Postgres at most' }),
  redis_url: Type.String({ minLength: 1, secret: true, description: 'redis://host:port' }),
  ...MediaPlace.properties,
  nats_url: Type.Array(Type.String(), { minItems: 1, secret: true, description: 'nats://host:port, several with commas' }),
});
export type WorkerProcessConfig = Static<typeof WorkerProcessConfig>;
