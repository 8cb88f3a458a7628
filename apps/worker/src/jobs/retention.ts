import type { Jobs } from '@iris/jobs';
import type { Outbox } from '@iris/outbox';
import { type Lane, laneKey, type MessageId, type TenantId } from '@iris/protocol';
import type { Clock, Log, Meter } from '@iris/runtime';
import type { Store } from '@iris/store';
import { quotasOf, type WorkerConfig } from '../config.js';
import { allTenants } from './tenants.js';

const messagesAtOnce = 500;
/** Of one tenant in one run: the others' turn comes, and the next run goes on. */
const mostBatches = 20;

export interface RetentionDeps {
  readonly outbox: Outbox;
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * What is past a tenant's retention goes: durable frames from the outbox, whose messages stay in history; and messages from history,
 * search and outbox, where the tenant's quota bounds their age.
 */
export async function retention(deps: RetentionDeps, config: WorkerConfig): Promise<void> {
  const { outbox, store, clock } = deps;
  for await (const { tenant_id, quotas } of allTenants(store)) {
    const { outbox_max_frames, outbox_max_age_ms, history_max_age_ms } = quotasOf(config, quotas);
    await outbox.trim(tenant_id, { max_frames: outbox_max_frames, before_ms: clock.now() - outbox_max_age_ms });
    if (history_max_age_ms > 0) await forgetHistory(deps, tenant_id, clock.now() - history_max_age_ms);
  }
}

/**
 * Deleted for good as by `message.delete`, but nobody is told: what an app or an agent keeps of its own age is theirs to decide. A message that waits
 * for its turn stays until that has ended.
 */
async function forgetHistory(
  { outbox, store, jobs, clock, log, meter }: RetentionDeps,
  tenant_id: TenantId,
  before_ts: number,
): Promise<void> {
  let count = 0;
  for (let batch = 0; batch < mostBatches; batch++) {
    const aged = await store.messages.aged(tenant_id, { before_ts, limit: messagesAtOnce });
    if (aged.length === 0) break;
    const lanes = new Map<string, { lane: Lane; message_ids: MessageId[] }>();
    for (const { message_id, ...lane } of aged) {
      const key = laneKey(lane);
      const found = lanes.get(key) ?? { lane, message_ids: [] };
      found.message_ids.push(message_id);
      lanes.set(key, found);
    }
    // Before they go: a worker that dies between the two leaves a mark too many, not one too few.
    await store.pushStale.mark(tenant_id, clock.now());
    for (const { lane, message_ids } of lanes.values()) {
      await store.messages.remove(tenant_id, lane, message_ids, clock.now());
      await outbox.forget(tenant_id, { message_ids });
    }
    count += aged.length;
  }
  if (count === 0) return;
  // What a device still shows as news of them goes too.
  await store.pushStale.mark(tenant_id, clock.now());
  await jobs.enqueue('push.withdraw', { tenant_id }, { id: tenant_id });
  meter.counter('iris_worker_expired_messages_total').add(count);
  log.info('worker.history_forgotten', { tenant_id, messages: count });
}
