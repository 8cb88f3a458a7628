import type { Outbox, OutboxPage } from '@iris/outbox';
import type { Cursor, TenantId } from '@iris/protocol';
import type { EdgeConfig } from './config.js';

/**
 * Reads of the outbox, so many at once: when everyone comes back at the same time, pages are what would fill the memory.
 */
export interface Pages {
  /** Rejects as {@link Outbox.read} does. */
  read(tenant_id: TenantId, after: Cursor, options?: { compact?: boolean; limit?: number }): Promise<OutboxPage>;
}

export function pages(outbox: Outbox, config: Pick<EdgeConfig, 'page_frames' | 'page_bytes' | 'page_reads'>): Pages {
  let reading = 0;
  const queue: (() => void)[] = [];
  /** A place that becomes free goes to whoever waits longest, without being free in between. */
  const next = () => {
    const waiting = queue.shift();
    if (waiting === undefined) reading--;
    else waiting();
  };
  return {
    async read(tenant_id, after, { compact = false, limit = config.page_frames } = {}) {
      if (reading < config.page_reads) reading++;
      else await new Promise<void>((resolve) => void queue.push(resolve));
      try {
        return await outbox.read(tenant_id, after, { limit, max_bytes: config.page_bytes, compact });
      } finally {
        next();
      }
    },
  };
}

/** Whether frames above `at` are gone that were really used. */
export const lostBefore = (page: OutboxPage, at: Cursor): boolean =>
  page.floor > at && !(page.last_known !== undefined && at >= page.last_known);
