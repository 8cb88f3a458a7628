import type { TenantId } from '@iris/protocol';

/**
 * Every key of the outbox, and there is no other place that names one. The braces put all of a tenant's keys into one slot of a
 * Redis Cluster, so that a script can touch them together.
 */
const names = {
  /** Hash: run, head, limit, floor, seeded, previous, known, keys_since. What they mean is in memory-tenant.ts, `Sequence`. */
  seq: 'seq',
  /** Stream: the frames, `<cursor>-0`. */
  log: 'log',
  /** Hash: idempotency key → cursor; those of the last 24 h, and those before. */
  keys: 'keys',
  keys_before: 'keys-before',
  /** Hash: message id → cursors of its frames. */
  ids: 'ids',
  /** Hash: `supersedes` → cursor of the newest frame with it. */
  newest: 'newest',
  /** Hash: device → watermark. */
  marks: 'marks',
  /** Hash, sorted set, hash: who holds which device, and until when. See lua/parts/hold.lua. */
  live: 'live',
  edges: 'edges',
  holds: 'holds',
  /** Hash: what is going on. */
  values: 'values',
} as const;

export type KeyName = keyof typeof names;
export const keyNames = Object.keys(names) as KeyName[];

/** Tenant ids are ours: letters, digits, `-` and `_`. */
export const keyOf = (tenant_id: TenantId, name: KeyName): string => `iris:{${tenant_id}}:${names[name]}`;

/** String: when the bucket of what is limited for all edges together is full again. Belongs to no tenant, and goes by itself. */
export const attemptsKey = (of: string): string => `iris:attempts:{${of}}`;
