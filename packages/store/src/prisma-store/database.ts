import type { Clock } from '@iris/runtime';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../generated/client.js';
import type { Connections } from './connections.js';

/** Columns that the store keeps for itself. */
const omit = {
  tenant: { last_number: true },
  channel: { number: true, idempotency_key: true },
  message: { seq: true, search_text: true, search_grams: true, deleted_at: true },
  media: { seq: true, attached_by: true },
  audit: { id: true },
} as const;

/**
 * Prisma over the pool, for what is one plain statement. Its transactions are not used: after a timeout they would put a
 * connection back into the pool that is still busy. What needs more is written in SQL, through `connections`.
 */
export const prismaClient = ({ pool }: Connections) => new PrismaClient({ adapter: new PrismaPg(pool), omit });

export interface Database {
  readonly prisma: ReturnType<typeof prismaClient>;
  readonly sql: Connections;
  /** Connections of their own for searches: planned otherwise, and never in the way of a commit. */
  readonly searching: Connections;
  readonly clock: Clock;
}
