import type { OutboxPage } from '@iris/outbox';
import { answerLate } from './answers.js';
import { wakeBehind } from './catch-up.js';
import type { EdgeContext } from './context.js';
import { giveEphemeral, handOut, reconnectLive } from './fan-out.js';
import { type Durable, type Ephemeral, type Feed, seek } from './feed.js';
import { endLanes, isOfGone } from './gone-lanes.js';
import { lostBefore } from './pages.js';
import { tick_ms, toTicks } from './ticks.js';

const deletedIn = (body: Uint8Array): readonly string[] =>
  (JSON.parse(Buffer.from(body).toString()) as { payload: { message_ids: readonly string[] } }).payload.message_ids;

const revsMax = 2048;
const endedMax = 1024;
/** Frames after which nothing live about what they name is shown. */
const endings: ReadonlySet<string> = new Set(['message', 'message.stop', 'tool.end', 'agent.idle']);
const aheadMax = 256;
/** A gap that the outbox cannot close for so long is a loss: the devices come back and ask. */
const hopeless_ms = 2_000;

export function durable(edge: EdgeContext, feed: Feed, frame: Durable) {
  if (frame.cursor <= feed.last) return late(edge, frame);
  if (feed.repair !== undefined) return wait(edge, feed, frame);
  if (frame.previous <= feed.last) return pass(edge, feed, frame);
  startRepair(edge, feed, 'frame');
  wait(edge, feed, frame);
}

export function ephemeral(edge: EdgeContext, feed: Feed, frame: Ephemeral) {
  if (frame.after < feed.born || isStale(edge, feed, frame)) return;
  if (frame.after <= feed.last && feed.repair === undefined) return show(edge, feed, frame);
  feed.ahead ??= new Map();
  // What has no key replaces nothing: it waits under a name of its own.
  const key = frame.key === '' ? `\n${feed.ahead.size}` : frame.key;
  if (!feed.ahead.has(key) && feed.ahead.size >= aheadMax) return;
  feed.ahead.set(key, { ...frame, body: frame.body.slice() });
  if (frame.after > feed.last) seek(edge, feed, frame.after);
}

/** Each tick: a feed that has not reached what it sought for a whole tick has a gap. */
export function seekTick(edge: EdgeContext): void {
  for (const feed of edge.seeking) {
    if (feed.last >= feed.sought) edge.seeking.delete(feed);
    else if (feed.repair === undefined && edge.time.tick > feed.sought_since + 1) {
      edge.seeking.delete(feed);
      startRepair(edge, feed, 'head');
    }
  }
}

function startRepair(edge: EdgeContext, feed: Feed, found_by: string): void {
  feed.repair = { waiting: new Map(), bytes: 0 };
  edge.meters.gaps.add(1, { found_by });
  void repair(edge, feed, feed.repair);
}

function wait(edge: EdgeContext, feed: Feed, frame: Durable): void {
  const { repair } = feed;
  if (repair === undefined) return;
  // Over the bound they are fetched from the outbox like the rest; only that they exist is kept.
  if (repair.bytes + frame.body.length > edge.config.waiting_repair_bytes) feed.sought = Math.max(feed.sought, frame.cursor);
  else if (!repair.waiting.has(frame.cursor)) {
    repair.bytes += frame.body.length;
    repair.waiting.set(frame.cursor, { ...frame, body: frame.body.slice() });
  }
}

/** Nothing later goes out before the gap is closed: everything that comes meanwhile waits in `state`. */
async function repair(edge: EdgeContext, feed: Feed, state: NonNullable<Feed['repair']>): Promise<void> {
  let hopeless_at = edge.time.tick + toTicks(hopeless_ms);
  for (;;) {
    let page: OutboxPage | undefined;
    try {
      page = await edge.pages.read(feed.tenant_id, feed.last);
    } catch (error) {
      // The outbox is away. Nothing new can be appended either, so nobody is the worse for waiting.
      edge.log.warn('edge.repair_failed', { error });
      hopeless_at = edge.time.tick + toTicks(hopeless_ms);
    }
    if (feed.closed) return;
    const before = feed.last;
    if (page !== undefined && absorb(edge, feed, state, page)) return finish(edge, feed);
    if (feed.last > before) {
      hopeless_at = edge.time.tick + toTicks(hopeless_ms);
      continue;
    }
    if (edge.time.tick >= hopeless_at) {
      giveUp(edge, feed, state);
      return finish(edge, feed);
    }
    await new Promise<void>((resolve) => void edge.clock.after(tick_ms, resolve));
    if (feed.closed) return;
  }
}

/** Hand out a page and what waited behind it; true when there is no gap left. */
function absorb(edge: EdgeContext, feed: Feed, { waiting }: NonNullable<Feed['repair']>, page: OutboxPage): boolean {
  if (lostBefore(page, feed.last)) lose(edge, feed, 'retention');
  for (const entry of page.entries) {
    if (entry.cursor <= feed.last) continue;
    const came = waiting.get(entry.cursor);
    pass(edge, feed, {
      kind: 'durable',
      tenant_id: feed.tenant_id,
      previous: feed.last,
      ...entry,
      ...(came?.origin ? { origin: came.origin } : {}),
    });
  }
  feed.last = Math.max(feed.last, page.next);
  for (const frame of [...waiting.values()].sort((a, b) => a.cursor - b.cursor)) {
    if (frame.cursor > feed.last && frame.previous > feed.last) break;
    waiting.delete(frame.cursor);
    if (frame.cursor > feed.last) pass(edge, feed, frame);
    else late(edge, frame);
  }
  return waiting.size === 0 && page.unseeded === undefined && page.next >= page.head;
}

function giveUp(edge: EdgeContext, feed: Feed, { waiting }: NonNullable<Feed['repair']>): void {
  lose(edge, feed, 'outbox');
  for (const frame of waiting.values()) {
    feed.last = Math.max(feed.last, frame.cursor);
    late(edge, frame);
  }
}

/** Live connections miss frames that cannot be had: they come back, and `sync` tells them so. */
function lose(edge: EdgeContext, feed: Feed, why: string): void {
  edge.log.warn('edge.feed_lost', { tenant_id: feed.tenant_id, why, last: feed.last });
  reconnectLive(edge, feed);
}

function finish(edge: EdgeContext, feed: Feed): void {
  feed.repair = undefined;
  wakeBehind(edge, feed);
  const { ahead } = feed;
  feed.ahead = undefined;
  if (ahead === undefined) return;
  // One that is still ahead was made after frames that are not in the outbox: its newer ones will come.
  for (const frame of ahead.values()) if (frame.after <= feed.last && !isStale(edge, feed, frame)) show(edge, feed, frame);
}

function pass(edge: EdgeContext, feed: Feed, frame: Durable): void {
  if (endings.has(frame.type) && frame.message_id !== undefined) end(feed, frame.message_id);
  else if (frame.type === 'message.deleted') for (const id of deletedIn(frame.body)) end(feed, id);
  else if (frame.type === 'channel.deleted') endLanes(edge, feed, frame.body);
  feed.last = frame.cursor;
  handOut(edge, feed, frame);
}

/** A frame that has been handed out already, but without its origin's `id`: the answer is owed still. */
function late(edge: EdgeContext, frame: Durable): void {
  const { origin, except_device_id } = frame;
  if (origin === undefined) return;
  const connection = edge.connections.get(origin.connection_id);
  if (connection?.peer !== 'device' || (except_device_id !== undefined && connection.device_id === except_device_id)) return;
  answerLate(edge, connection, origin.n, frame);
}

function end({ ended }: Feed, name: string): void {
  ended.add(name);
  if (ended.size > endedMax) ended.delete(ended.values().next().value!);
}

const isStale = (edge: EdgeContext, feed: Feed, { key, rev, message_id, body }: Ephemeral): boolean =>
  (message_id !== undefined && feed.ended.has(message_id)) ||
  (key !== '' && rev <= (feed.revs.get(key) ?? -1)) ||
  isOfGone(edge, feed, body);

function show(edge: EdgeContext, feed: Feed, frame: Ephemeral): void {
  if (frame.key !== '') pastRev(feed, frame.key, frame.rev);
  giveEphemeral(edge, feed, frame);
}

/** Of the live frames of this key, no more than what is newer than `rev`. */
export function pastRev({ revs }: Feed, key: string, rev: number): void {
  const known = revs.get(key) ?? -1;
  // Taken out first, so that the oldest key is the first of the map.
  revs.delete(key);
  revs.set(key, Math.max(known, rev));
  if (revs.size > revsMax) revs.delete(revs.keys().next().value!);
}
