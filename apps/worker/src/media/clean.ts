import type { Jobs } from '@iris/jobs';
import type { MediaStore } from '@iris/media';
import type { TenantId } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import type { Store } from '@iris/store';

export interface CleanConfig {
  /** Milliseconds that an upload may take, or wait for its message. */
  readonly media_loose_ms: number;
  /** Milliseconds that a file which an agent offered is kept. */
  readonly media_offered_ms: number;
}

const page = 500;
/** Rounds of one run: what is left waits for the next. */
const rounds = 20;

/** Files that nothing names any more: their rows, and then their bytes. */
export async function cleanMedia(
  { store, media, clock, log }: { store: Store; media: MediaStore; clock: Clock; log: Log; jobs: Jobs },
  config: CleanConfig,
): Promise<void> {
  const now = clock.now();
  for (let round = 0; round < rounds; round++) {
    const stale = await store.media.stale({
      loose_before: now - config.media_loose_ms,
      offered_before: now - config.media_offered_ms,
      limit: page,
    });
    const byTenant = new Map<TenantId, string[]>();
    for (const { tenant_id, media_id } of stale) byTenant.set(tenant_id, [...(byTenant.get(tenant_id) ?? []), media_id]);
    for (const [tenant_id, media_ids] of byTenant) await store.media.remove(tenant_id, media_ids);
    const removing = await store.media.removing(page);
    for (const { tenant_id, object_id } of removing) {
      await media.remove(tenant_id, object_id);
      await store.media.removed(tenant_id, object_id);
    }
    if (stale.length + removing.length > 0) log.info('media.cleaned', { files: stale.length, objects: removing.length });
    if (stale.length < page && removing.length < page) break;
  }
  await media.sweep(now - config.media_loose_ms);
}
