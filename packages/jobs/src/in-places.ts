import type { TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import { DelayedError, type Job, type Queue } from 'bullmq';
import { tenantPlaces } from './tenant-places.js';

/**
 * What is put aside comes back by itself after a while, also when who put it there is gone; the more of it there is, the later, so that it costs little.
 * Whoever is there calls it back before.
 */
const aside_ms = (others: number): number => Math.min(15_000, 1_000 + 5 * others);

/**
 * `run`, with no more than `most` jobs of one tenant under way at once, of those that were asked for as somebody's.
 * @param leaving nothing is called back any more: it would come to others only
 */
export function inPlaces<D>(
  most: number,
  queue: () => Queue,
  run: (job: Job<D>) => Promise<void>,
  leaving: () => boolean,
  clock: Clock,
): (job: Job<D>, token?: string) => Promise<void> {
  const places = tenantPlaces(most, async (job_id) => {
    try {
      if (leaving()) return true;
      const job = await queue().getJob(job_id);
      if (job === undefined) return false;
      await job.promote();
      return true;
    } catch {
      // It does not wait there any more, or the queue cannot be reached: then its time comes.
      return false;
    }
  });
  return async (job, token) => {
    const tenant_id = job.opts.priority === undefined ? undefined : (job.data as { tenant_id?: TenantId }).tenant_id;
    if (tenant_id === undefined) return run(job);
    if (!places.enter(tenant_id, job.id!)) {
      await job.moveToDelayed(clock.now() + aside_ms(places.waiting(tenant_id)), token);
      places.aside(tenant_id, job.id!);
      throw new DelayedError();
    }
    return run(job).finally(() => places.leave(tenant_id));
  };
}
