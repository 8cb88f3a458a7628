import type { TenantId } from '@iris/protocol';
import type { Clock, Log, Meter } from '@iris/runtime';
import type { Store } from '@iris/store';
import type { WorkerConfig } from '../config.js';
import { allTenants } from './tenants.js';

/** Rows of each kind that one call takes of a tenant. */
const rowsAtOnce = 500;
/** Rows of one run: what is left waits for the next. */
const mostRows = 50_000;

export interface KeysDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * Upkeep of what is kept only so that nothing happens twice. Each run asks every tenant, and takes so many rows of each; then again those that have
 * more, until the run has done its share. The next one begins behind the tenant that was last, so that nobody is first each time.
 */
export function createKeyExpiry({ store, clock, log, meter }: KeysDeps, config: Pick<WorkerConfig, 'keys_kept_ms'>): () => Promise<void> {
  const counted = meter.counter('iris_worker_expired_keys_total');
  let last: TenantId | undefined;

  return async () => {
    const before = clock.now() - config.keys_kept_ms;
    let left = mostRows;
    /** @returns whether it has more */
    const expire = async (tenant_id: TenantId): Promise<boolean> => {
      const { expired, more } = await store.keys.expire(tenant_id, { before, limit: Math.min(rowsAtOnce, left) });
      left -= expired;
      last = tenant_id;
      if (expired > 0) counted.add(expired);
      return more;
    };
    let more: TenantId[] = [];
    for await (const tenant_id of tenantsBehind(store, last)) {
      if (await expire(tenant_id)) more.push(tenant_id);
      if (left <= 0) break;
    }
    while (more.length > 0 && left > 0) {
      const still: TenantId[] = [];
      for (const tenant_id of more) if (left > 0 && (await expire(tenant_id))) still.push(tenant_id);
      more = still;
    }
    if (left < mostRows) log.info('worker.keys_expired', { rows: mostRows - left });
  };
}

/** All of them, once; the one named, and those before it, come last. */
async function* tenantsBehind(store: Store, last: TenantId | undefined): AsyncGenerator<TenantId> {
  for await (const { tenant_id } of allTenants(store, last)) yield tenant_id;
  if (last === undefined) return;
  for await (const { tenant_id } of allTenants(store)) {
    if (tenant_id > last) return;
    yield tenant_id;
  }
}
