/**
 * One tenant's outbox as plain data, and each operation on it as one function: the same rules as the Lua scripts beside
 * this file, in the same words. Nothing here waits, so each is atomic.
 */
import type { ConnectionId, Cursor, DeviceId, EdgeId } from '@iris/protocol';
import type { AppendBatch, Appended, AppendFrame, OutboxPage, OutboxRefusal, Registered } from './outbox.js';
import { keyKept_ms } from './outbox.js';

interface Logged extends AppendFrame {
  readonly cursor: Cursor;
  readonly at: number;
}

interface Sequence {
  /** The run of the store under which it was seeded; under another it is not trusted. */
  readonly run: number;
  head: Cursor;
  limit: Cursor;
  floor: Cursor;
  readonly seededAt: Cursor;
  /** Until the first append after the seed. */
  previous: Cursor | undefined;
  /** Until the floor rises above {@link seededAt}. */
  lastKnown: Cursor | undefined;
  /** Cursors that seeds left out, of those that may still be in sight. */
  skipped: number;
}

interface Live {
  readonly edge_id: EdgeId;
  readonly connection_id: ConnectionId;
  until: number;
}

export interface Tenant {
  sequence: Sequence | undefined;
  /** Rising by cursor. */
  log: Logged[];
  /** Two generations: the older goes when the newer is 24 h old. */
  keys: Map<string, Cursor>;
  keysBefore: Map<string, Cursor>;
  keysSince: number;
  byMessage: Map<string, Cursor[]>;
  /** `supersedes` → the newest frame with it. */
  newest: Map<string, Cursor>;
  readonly marks: Map<DeviceId, Cursor>;
  readonly live: Map<DeviceId, Live>;
  readonly edges: Map<EdgeId, { until: number; holds: number }>;
  readonly values: Map<string, string>;
}

export const emptyTenant = (): Tenant => ({
  sequence: undefined,
  log: [],
  keys: new Map(),
  keysBefore: new Map(),
  keysSince: 0,
  byMessage: new Map(),
  newest: new Map(),
  marks: new Map(),
  live: new Map(),
  edges: new Map(),
  values: new Map(),
});

export function seed(tenant: Tenant, run: number, at: Cursor, limit: Cursor, lastKnown?: Cursor): void {
  if (tenant.sequence?.run === run) return;
  const before = tenant.sequence;
  const head = Math.max(at, before?.head ?? 0);
  tenant.values.clear();
  if (before !== undefined && lastKnown !== undefined && lastKnown <= before.head) {
    // All that was given is here: nothing was lost, and what was logged is as true as it was.
    const { head: old, floor } = before;
    const skipped = head - old + before.skipped;
    tenant.sequence = { run, head, limit, floor, seededAt: head, previous: old, lastKnown: old, skipped };
    return;
  }
  const known = lastKnown === undefined ? undefined : Math.min(lastKnown, head);
  tenant.sequence = {
    run,
    head,
    limit,
    floor: head,
    seededAt: head,
    previous: known ?? head,
    lastKnown: known,
    skipped: head - (known ?? head),
  };
  tenant.log = [];
  tenant.keys = new Map();
  tenant.keysBefore = new Map();
  tenant.byMessage = new Map();
  tenant.newest = new Map();
}

export function extend(tenant: Tenant, run: number, limit: Cursor): void {
  const { sequence } = tenant;
  if (sequence?.run === run) sequence.limit = Math.max(sequence.limit, limit);
}

export function append(tenant: Tenant, run: number, now: number, batch: AppendBatch): Appended | OutboxRefusal {
  const { sequence } = tenant;
  if (sequence?.run !== run) return { refused: 'unseeded' };
  if (now >= tenant.keysSince + keyKept_ms) {
    tenant.keysBefore = now >= tenant.keysSince + 2 * keyKept_ms ? new Map() : tenant.keys;
    tenant.keys = new Map();
    tenant.keysSince = now;
  }

  const cursors: Cursor[] = [];
  const fresh: boolean[] = [];
  const seen = new Map<string, Cursor>();
  let head = sequence.head;
  for (const { key } of batch.frames) {
    const first = key === undefined ? undefined : (seen.get(key) ?? tenant.keys.get(key) ?? tenant.keysBefore.get(key));
    fresh.push(first === undefined);
    cursors.push(first ?? ++head);
    if (first === undefined && key !== undefined) seen.set(key, head);
  }
  if (head > sequence.limit) return { refused: 'exhausted' };

  const previous = sequence.previous ?? sequence.head;
  if (head > sequence.head) {
    sequence.previous = undefined;
    sequence.head = head;
    for (const [key, cursor] of seen) tenant.keys.set(key, cursor);
    batch.frames.forEach((frame, i) => {
      if (fresh[i]) log(tenant, { ...frame, cursor: cursors[i]!, at: now });
    });
    raiseFloor(tenant, beyond(sequence, batch.max_frames));
    if (tenant.log.length > batch.max_frames * 1.1 + 64) sweep(tenant);
  }
  const edges = [...tenant.edges].filter(([, edge]) => edge.until > now).map(([edge_id]) => edge_id);
  return { cursors, fresh, previous, edges };
}

function log(tenant: Tenant, entry: Logged): void {
  tenant.log.push(entry);
  for (const id of entry.message_ids ?? []) tenant.byMessage.set(id, [...(tenant.byMessage.get(id) ?? []), entry.cursor]);
  if (entry.supersedes !== undefined) tenant.newest.set(entry.supersedes, entry.cursor);
}

/** Where `max_frames` frames begin: cursors that a seed left out are none. */
function beyond({ head, seededAt, skipped }: Sequence, max_frames: number): Cursor {
  const floor = head - max_frames;
  return floor < seededAt ? floor - skipped : floor;
}

/** What is at or below the floor cannot be read from now on, wherever its bytes are. */
function raiseFloor(tenant: Tenant, floor: Cursor): void {
  const sequence = tenant.sequence!;
  if (floor <= sequence.floor) return;
  sequence.floor = floor;
  if (floor > sequence.seededAt) {
    sequence.lastKnown = undefined;
    sequence.skipped = 0;
  }
}

/** Take what is at or below the floor out of the log and the indexes. */
function sweep(tenant: Tenant): void {
  const { floor } = tenant.sequence!;
  const gone = tenant.log.filter((entry) => entry.cursor <= floor);
  tenant.log = tenant.log.slice(gone.length);
  for (const entry of gone) unindex(tenant, entry);
}

function unindex(tenant: Tenant, entry: Logged): void {
  for (const id of entry.message_ids ?? []) {
    const left = (tenant.byMessage.get(id) ?? []).filter((cursor) => cursor !== entry.cursor);
    if (left.length > 0) tenant.byMessage.set(id, left);
    else tenant.byMessage.delete(id);
  }
  if (entry.supersedes !== undefined && tenant.newest.get(entry.supersedes) === entry.cursor) tenant.newest.delete(entry.supersedes);
}

export function read(
  tenant: Tenant,
  run: number,
  after: Cursor,
  { limit, max_bytes = Number.POSITIVE_INFINITY, compact = false }: { limit: number; max_bytes?: number; compact?: boolean },
): OutboxPage {
  const { sequence } = tenant;
  if (sequence === undefined) return { entries: [], next: after, head: 0, floor: 0, unseeded: true };
  const { head, floor } = sequence;
  const entries = [];
  let next = Math.max(after, floor);
  let looked = 0;
  let bytes = 0;
  for (let i = firstAbove(tenant.log, next); ; i++) {
    const entry = tenant.log[i];
    if (entry === undefined) {
      next = Math.max(next, head);
      break;
    }
    if (looked === limit) break;
    const { cursor, type, message_ids, except_device_id, push, supersedes } = entry;
    if (!compact || supersedes === undefined || tenant.newest.get(supersedes) === cursor) {
      if (entries.length > 0 && bytes + entry.body.length > max_bytes) break;
      bytes += entry.body.length;
      const message_id = message_ids?.[0];
      entries.push({
        cursor,
        type,
        ...(message_id === undefined ? {} : { message_id }),
        ...(except_device_id === undefined ? {} : { except_device_id }),
        push,
        body: entry.body.slice(),
      });
    }
    looked++;
    next = cursor;
  }
  return {
    entries,
    next,
    head,
    floor,
    ...(sequence.lastKnown === undefined ? {} : { last_known: sequence.lastKnown }),
    ...(sequence.run === run ? {} : { unseeded: true }),
  };
}

function firstAbove(log: readonly Logged[], cursor: Cursor): number {
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (log[middle]!.cursor > cursor) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function forget(tenant: Tenant, what: { message_ids: readonly string[] } | { lane: string }): number {
  const floor = tenant.sequence?.floor ?? 0;
  const indexed = 'lane' in what ? undefined : new Set(what.message_ids.flatMap((id) => tenant.byMessage.get(id) ?? []));
  const goes = (entry: Logged) => (indexed === undefined ? 'lane' in what && entry.lane === what.lane : indexed.has(entry.cursor));
  const gone = tenant.log.filter((entry) => entry.cursor > floor && goes(entry));
  tenant.log = tenant.log.filter((entry) => !goes(entry));
  for (const entry of gone) unindex(tenant, entry);
  return gone.length;
}

export function trim(tenant: Tenant, now: number, keep: { max_frames: number; before_ms: number }): Cursor {
  for (const [device_id, live] of tenant.live) if (live.until <= now) release(tenant, device_id);
  const { sequence } = tenant;
  if (sequence === undefined) return 0;
  raiseFloor(tenant, beyond(sequence, keep.max_frames));
  for (const entry of tenant.log) {
    if (entry.at >= keep.before_ms) break;
    raiseFloor(tenant, entry.cursor);
  }
  sweep(tenant);
  return sequence.floor;
}

export function register(
  tenant: Tenant,
  run: number,
  until: number,
  device: { device_id: DeviceId; edge_id: EdgeId; connection_id: ConnectionId; watermark: Cursor; new: boolean },
): Registered | OutboxRefusal {
  const { sequence } = tenant;
  if (sequence?.run !== run) return { refused: 'unseeded' };
  const { device_id, edge_id, connection_id } = device;
  const kept = tenant.marks.get(device_id);
  const watermark = kept === undefined && device.new ? sequence.head : Math.max(kept ?? 0, device.watermark);
  tenant.marks.set(device_id, watermark);
  const before = tenant.live.get(device_id);
  hold(tenant, device_id, { edge_id, connection_id, until });
  return {
    head: sequence.head,
    floor: sequence.floor,
    watermark,
    ...(before === undefined || before.connection_id === connection_id
      ? {}
      : { replaced: { edge_id: before.edge_id, connection_id: before.connection_id } }),
  };
}

function hold(tenant: Tenant, device_id: DeviceId, live: Live): void {
  release(tenant, device_id);
  tenant.live.set(device_id, live);
  const edge = tenant.edges.get(live.edge_id);
  tenant.edges.set(live.edge_id, { until: Math.max(edge?.until ?? 0, live.until), holds: (edge?.holds ?? 0) + 1 });
}

function release(tenant: Tenant, device_id: DeviceId): void {
  const live = tenant.live.get(device_id);
  if (live === undefined) return;
  tenant.live.delete(device_id);
  const edge = tenant.edges.get(live.edge_id);
  if (edge !== undefined && --edge.holds <= 0) tenant.edges.delete(live.edge_id);
}

export function unregister(tenant: Tenant, device: { device_id: DeviceId; edge_id: EdgeId; connection_id: ConnectionId }): void {
  if (tenant.live.get(device.device_id)?.connection_id === device.connection_id) release(tenant, device.device_id);
}

/** Returns the connection when its device has moved on. */
export function refresh(
  tenant: Tenant,
  edge_id: EdgeId,
  until: number,
  { device_id, connection_id }: { device_id: DeviceId; connection_id: ConnectionId },
): ConnectionId[] {
  const live = tenant.live.get(device_id);
  if (live !== undefined && live.connection_id !== connection_id) return [connection_id];
  hold(tenant, device_id, { edge_id, connection_id, until });
  return [];
}

export function confirm(tenant: Tenant, device_id: DeviceId, cursor: Cursor): void {
  if (cursor > (tenant.marks.get(device_id) ?? -1)) tenant.marks.set(device_id, cursor);
}

export function devices(tenant: Tenant, now: number) {
  return [...new Set([...tenant.marks.keys(), ...tenant.live.keys()])].flatMap((device_id) => {
    const watermark = tenant.marks.get(device_id);
    const live = tenant.live.get(device_id);
    if (live !== undefined && live.until > now)
      return [{ device_id, watermark: watermark ?? 0, edge_id: live.edge_id, connection_id: live.connection_id }];
    return watermark === undefined ? [] : [{ device_id, watermark }];
  });
}
