import type { Clock } from '@iris/runtime';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../generated/client.js';
import type { Connections } from './connections.js';
import { currentScope, type Scope, withScope } from './scope.js';

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
 *
 * Whose rows a call is about is taken from its arguments: `tenant_id` in `where` or `data`. Without one it says `everywhere` around itself,
 * or is refused.
 */
export function prismaClient({ pool }: Connections) {
  const plain = new PrismaClient({ adapter: new PrismaPg(pool), omit });
  return plain.$extends({
    query: {
      $allModels: {
        $allOperations({ model, operation, args, query }) {
          const scope = currentScope() ?? scopeIn(args as Args);
          if (scope === undefined) throw new Error(`${model}.${operation} does not say whose rows it is about`);
          if (operation !== 'findUnique') return withScope(scope, async () => query(args));
          // Prisma puts those of one turn of the loop into one statement, whosever they are.
          const { where, ...rest } = args as { where: Record<string, unknown> };
          const delegate = (plain as unknown as Record<string, { findFirst(args: unknown): Promise<unknown> }>)[lowered(model)]!;
          return withScope(scope, async () => delegate.findFirst({ ...rest, where: flat(where) })) as ReturnType<typeof query>;
        },
      },
    },
  });
}

/** What crosses tenants by its nature, asked through Prisma. */
export const everywhere = <T>(run: () => PromiseLike<T>): Promise<T> => withScope('everywhere', async () => run());

interface Args {
  readonly where?: Record<string, unknown>;
  readonly data?: unknown;
  readonly create?: unknown;
}

const lowered = (model: string) => model.charAt(0).toLowerCase() + model.slice(1);

/** `{tenant_id_token_id: {tenant_id, token_id}}` as `{tenant_id, token_id}`. */
const flat = (where: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(where).flatMap(([name, value]) => (name.startsWith('tenant_id_') ? Object.entries(value as object) : [[name, value]])),
  );

function scopeIn({ where, data, create }: Args): Scope | undefined {
  const rows = [...(where === undefined ? [] : [flat(where)]), ...(Array.isArray(data) ? (data as unknown[]) : [data]), create];
  const tenants = rows.flatMap((row) => {
    const { tenant_id } = (row ?? {}) as { tenant_id?: string | { in?: string[] } };
    return typeof tenant_id === 'string' ? [tenant_id] : (tenant_id?.in ?? []);
  });
  return tenants.length === 0 ? undefined : [...new Set(tenants)];
}

export interface Database {
  readonly prisma: ReturnType<typeof prismaClient>;
  readonly sql: Connections;
  /** Connections of their own for searches: planned otherwise, and never in the way of a commit. */
  readonly searching: Connections;
  readonly clock: Clock;
}
