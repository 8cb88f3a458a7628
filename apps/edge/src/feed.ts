import type { HelloAnswer, ToEdge } from '@iris/bus';
import type { Cursor, RequestId, TenantId } from '@iris/protocol';
import type { DeviceConnection } from './connection.js';
import type { EdgeContext } from './context.js';
import type { GoneLane } from './gone-lanes.js';

export type Durable = Extract<ToEdge, { kind: 'durable' }>;
export type Ephemeral = Extract<ToEdge, { kind: 'ephemeral' }>;

/** Live connections that are given the same bytes in one publish. */
export interface Group {
  readonly name: string;
  /** With cap `cursors`: frames show theirs. */
  readonly cursors: boolean;
  /** With cap `delta`: each gets updates of its own. */
  readonly delta: boolean;
  /** With cap `media_url`: media entries have links. */
  readonly links: boolean;
  count: number;
}

/** One tenant's frames on this edge: how far its live connections have everything, and what waits for a gap to close. */
export interface Feed {
  readonly tenant_id: TenantId;
  readonly groups: readonly Group[];
  /** Live connections that are told of reasoning. */
  reasoning_count: number;
  readonly live: Set<DeviceConnection>;
  readonly behind: Set<DeviceConnection>;
  /** Head when it was opened: what was made before that is old here, and nothing is known of its end. */
  readonly born: Cursor;
  /** Every live connection has everything up to here, and nothing above. */
  last: Cursor;
  /** While a gap is being closed: frames above it, by cursor. */
  repair: { readonly waiting: Map<Cursor, Durable>; bytes: number } | undefined;
  /** A cursor that is known to exist; when {@link last} does not reach it soon, there is a gap. */
  sought: Cursor;
  sought_since: number;
  /** Ephemerals made after frames that have not come yet: the newest per key. */
  ahead: Map<string, Ephemeral> | undefined;
  /** The newest `rev` given out per key, and messages that have ended: what comes late must not be shown. Both bounded. */
  readonly revs: Map<string, number>;
  readonly ended: Set<string>;
  /** Lanes that went a moment ago. */
  readonly gone: GoneLane[];
  /** Requests answered by durable frames that have not got to their connection yet. */
  readonly awaited: Map<Cursor, { readonly connection: DeviceConnection; readonly id: RequestId }[]>;
  /** Bytes handed to the groups since the sockets' buffers were looked at. */
  handed: number;
  /** Tick of the ping that a frame worth a push asked for; 0: none. */
  ping_at: number;
  rates: HelloAnswer['quotas'];
  closed: boolean;
}

export function openFeed(edge: EdgeContext, tenant_id: TenantId, head: Cursor, rates: Feed['rates']): Feed {
  const found = edge.feeds.get(tenant_id);
  if (found !== undefined) {
    found.rates = rates;
    return found;
  }
  const feed: Feed = {
    tenant_id,
    groups: [
      { name: `t:${tenant_id}`, cursors: false, delta: false, links: false, count: 0 },
      { name: `c:${tenant_id}`, cursors: true, delta: false, links: false, count: 0 },
      { name: `d:${tenant_id}`, cursors: false, delta: true, links: false, count: 0 },
      { name: `e:${tenant_id}`, cursors: true, delta: true, links: false, count: 0 },
      { name: `tl:${tenant_id}`, cursors: false, delta: false, links: true, count: 0 },
      { name: `cl:${tenant_id}`, cursors: true, delta: false, links: true, count: 0 },
      { name: `dl:${tenant_id}`, cursors: false, delta: true, links: true, count: 0 },
      { name: `el:${tenant_id}`, cursors: true, delta: true, links: true, count: 0 },
    ],
    reasoning_count: 0,
    live: new Set(),
    behind: new Set(),
    born: head,
    last: head,
    repair: undefined,
    sought: 0,
    sought_since: 0,
    ahead: undefined,
    revs: new Map(),
    ended: new Set(),
    gone: [],
    awaited: new Map(),
    handed: 0,
    ping_at: 0,
    rates,
    closed: false,
  };
  edge.feeds.set(tenant_id, feed);
  // Frames may have come, and been dropped, between the registration and now.
  void checkHeads(edge, [feed]);
  return feed;
}

/** A feed that nobody listens to is forgotten. */
export function releaseFeed(edge: EdgeContext, feed: Feed): void {
  if (feed.live.size + feed.behind.size > 0) return;
  feed.closed = true;
  edge.feeds.delete(feed.tenant_id);
  edge.seeking.delete(feed);
}

/** `cursor` exists: unless it comes by itself, it is fetched. */
export function seek(edge: EdgeContext, feed: Feed, cursor: Cursor): void {
  if (cursor <= feed.last || feed.closed) return;
  if (!edge.seeking.has(feed)) {
    edge.seeking.add(feed);
    feed.sought_since = edge.time.tick;
  }
  feed.sought = Math.max(feed.sought, cursor);
}

const headsAtOnce = 500;
/** A lost *last* frame leaves no gap behind it: only the head tells. */
export async function checkHeads(edge: EdgeContext, feeds: Iterable<Feed>): Promise<void> {
  const all = [...feeds].filter((feed) => feed.repair === undefined);
  for (let at = 0; at < all.length; at += headsAtOnce) {
    const some = all.slice(at, at + headsAtOnce);
    try {
      const heads = await edge.outbox.heads(some.map((feed) => feed.tenant_id));
      some.forEach((feed, i) => void seek(edge, feed, heads[i] ?? 0));
    } catch (error) {
      edge.log.warn('edge.heads_failed', { error });
    }
  }
}
