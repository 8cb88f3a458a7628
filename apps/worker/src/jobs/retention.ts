import type { Outbox } from '@iris/outbox';
import type { TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import type { Store } from '@iris/store';
import { quotasOf, type WorkerConfig } from '../config.js';

const page = 200;

/** Durable frames past a tenant's retention go from the outbox; their messages stay in history. */
export async function retention(
  { outbox, store, clock }: { outbox: Outbox; store: Store; clock: Clock },
  config: WorkerConfig,
): Promise<void> {
  for (let after: TenantId | undefined; ; ) {
    const tenants = await store.tenants.list({ limit: page, ...(after === undefined ? {} : { after }) });
    for (const { tenant_id, quotas } of tenants) {
      const { outbox_max_frames, outbox_max_age_ms } = quotasOf(config, quotas);
      await outbox.trim(tenant_id, { max_frames: outbox_max_frames, before_ms: clock.now() - outbox_max_age_ms });
    }
    after = tenants.at(-1)?.tenant_id;
    if (tenants.length < page) return;
  }
}
