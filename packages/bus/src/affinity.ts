import type { SessionId, TenantId } from '@iris/protocol';

/**
 * Rendezvous hashing: the instance that serves a tenant, the same for everyone who sees the same instances, and moving
 * only the tenants of an instance that comes or goes. Steady affinity is what makes one arrival order and warm caches;
 * nothing depends on it being right.
 */
export function ownerOf(tenant_id: TenantId, instances: Iterable<SessionId>): SessionId | undefined {
  let best: SessionId | undefined;
  let bestScore = -1;
  for (const instance of instances) {
    const score = hash(`${instance}\n${tenant_id}`);
    if (score > bestScore || (score === bestScore && best !== undefined && instance < best)) {
      best = instance;
      bestScore = score;
    }
  }
  return best;
}

/** FNV-1a with a final mix; 32 bits. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
