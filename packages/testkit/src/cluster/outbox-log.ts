import { redisOutbox } from '@iris/outbox';
import type { Cursor } from '@iris/protocol';
import type { Logged } from '../checks/index.js';
import type { AnyFrame } from '../frames.js';
import type { Cluster, ClusterTenant } from './cluster.js';

/** The whole of what was appended for a tenant, as it stands in the outbox: devices that were away for a moment are told less of it by `sync`. */
export async function outboxLog(cluster: Pick<Cluster, 'redis'>, { tenant_id }: Pick<ClusterTenant, 'tenant_id'>): Promise<Logged[]> {
  const outbox = await redisOutbox({ url: cluster.redis.url });
  const log: Logged[] = [];
  try {
    for (let after = 0 as Cursor; ; ) {
      const page = await outbox.read(tenant_id, after, { limit: 1_000 });
      for (const { cursor, body } of page.entries) log.push({ cursor, frame: JSON.parse(Buffer.from(body).toString()) as AnyFrame });
      if (page.next >= page.head) return log;
      after = page.next;
    }
  } finally {
    await outbox.close();
  }
}
