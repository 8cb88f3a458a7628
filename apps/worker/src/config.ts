import { Quotas } from '@iris/protocol';
import { type Static, Type } from 'typebox';
import { MediaConfig } from './media/config.js';
import { PushConfig } from './push/config.js';

const ms = (value: number, description: string) => Type.Integer({ default: value, minimum: 1, maximum: 24 * 3600 * 1000, description });

/** What a worker can be told. The quotas are the defaults of tenants that have none of their own. */
export const WorkerConfig = Type.Object({
  ...Quotas.properties,
  repair_ms: ms(5_000, 'how often messages without a place in the order are looked for'),
  owed_after_ms: ms(
    15_000,
    'milliseconds after which a message without a place is taken to be forgotten; longer than a request’s deadline',
  ),
  keys_ms: ms(3_600_000, 'how often idempotency keys that no repeat asks for any more are dropped, and pickers that are over'),
  keys_kept_ms: Type.Integer({
    default: 14 * 24 * 3_600_000,
    minimum: 24 * 3_600_000,
    maximum: 3_650 * 24 * 3_600_000,
    description: 'milliseconds for which they are kept in Postgres; the outbox keeps its own for 24 to 48 hours',
  }),
  retention_ms: ms(60_000, 'how often what is past retention is dropped'),
  concurrency: Type.Integer({ default: 4, minimum: 1, maximum: 1_000, description: 'jobs of one kind at once' }),
  ...PushConfig.properties,
  ...MediaConfig.properties,
  cursor_block: Type.Integer({ default: 10_000, minimum: 1, maximum: 1_000_000, description: 'cursors reserved in Postgres at a time' }),
});
export type WorkerConfig = Static<typeof WorkerConfig>;

/** Every value as it is when nothing is set. */
export const defaultWorkerConfig: WorkerConfig = Object.freeze(
  Object.fromEntries(
    Object.entries(WorkerConfig.properties).flatMap(([name, schema]) => {
      const { default: value } = schema as { default?: unknown };
      return value === undefined ? [] : [[name, value]];
    }),
  ),
) as unknown as WorkerConfig;

/** The quotas a tenant has: its own, else the configured. */
export function quotasOf(config: WorkerConfig, own: Partial<Quotas>): Quotas {
  const configured = Object.fromEntries(Object.keys(Quotas.properties).map((name) => [name, config[name as keyof Quotas]])) as Quotas;
  return { ...configured, ...own };
}
