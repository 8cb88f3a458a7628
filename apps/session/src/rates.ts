import { type Quotas, rateLimited, type TenantId } from '@iris/protocol';
import { admit, type Clock } from '@iris/runtime';

/**
 * What a tenant's devices may send together. All of a tenant's sends come to one instance, whichever edges its devices are on, so one bucket here is
 * shared by all edges without asking anyone.
 */
export interface SendRates {
  /** @throws RequestError `rate_limited` */
  take(tenant_id: TenantId, quotas: Quotas): void;
}

const bucketsMax = 10_000;

export function sendRates(clock: Clock): SendRates {
  /** When each tenant's bucket is full again. */
  const buckets = new Map<TenantId, number>();
  return {
    take(tenant_id, { tenant_sends_per_second, tenant_sends_burst }) {
      const now = clock.now();
      const next = admit(buckets.get(tenant_id) ?? 0, now, tenant_sends_per_second, tenant_sends_burst);
      if (next < 0) throw rateLimited('the tenant sends too much', -next);
      buckets.delete(tenant_id);
      buckets.set(tenant_id, next);
      if (buckets.size > bucketsMax) for (const [id, full_at] of buckets) if (full_at <= now) buckets.delete(id);
    },
  };
}
