import { type DeviceId, type Quotas, rateLimited, type TenantId } from '@iris/protocol';
import { admit, type Clock } from '@iris/runtime';

/**
 * What a tenant's devices may do, each and together. All of a tenant's requests come to one instance, whichever edges its devices are on, so buckets here
 * are shared by all edges without asking anyone. An edge has a bucket of its own for each of its connections, and refuses first; the ones
 * here are a second larger than that, so that only who takes from several edges ever meets them.
 */
export interface Rates {
  /** A request of a device; the same one again, after a store has failed, costs nothing. @throws RequestError `rate_limited` */
  take(request: { readonly tenant_id: TenantId; readonly type: string }, device_id: DeviceId, quotas: Quotas): void;
}

const bucketsMax = 20_000;

export function rates(clock: Clock): Rates {
  const buckets = () => {
    /** When each is full again. */
    const known = new Map<string, number>();
    return (key: string, per_second: number, burst: number): number => {
      const now = clock.now();
      const next = admit(known.get(key) ?? 0, now, per_second, burst);
      if (next < 0) return -next;
      known.delete(key);
      known.set(key, next);
      if (known.size > bucketsMax) for (const [id, full_at] of known) if (full_at <= now) known.delete(id);
      return 0;
    };
  };
  const [frames, sends, tenants] = [buckets(), buckets(), buckets()];
  const taken = new WeakSet<object>();
  return {
    take(request, device_id, quotas) {
      if (taken.has(request)) return;
      const { tenant_id, type } = request;
      const { frames_per_second, frames_burst, sends_per_second, sends_burst, tenant_sends_per_second, tenant_sends_burst } = quotas;
      const key = `${tenant_id}\n${device_id}`;
      const check = (wait: number, what: string) => {
        if (wait > 0) throw rateLimited(what, wait);
      };
      check(frames(key, frames_per_second, frames_burst + frames_per_second), 'the device sends too many frames');
      if (type === 'message.send') {
        check(sends(key, sends_per_second, sends_burst + sends_per_second), 'the device sends too much');
        check(tenants(tenant_id, tenant_sends_per_second, tenant_sends_burst), 'the tenant sends too much');
      }
      taken.add(request);
    },
  };
}
