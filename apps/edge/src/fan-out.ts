import { type RequestId, splice } from '@iris/protocol';
import { answerWhenRead, measure, sendAddressed, takeAwaited } from './answers.js';
import { fallBehind, holdFor, holdUpdates, wakeBehind } from './catch-up.js';
import { type DeviceConnection, type Member, memberOf } from './connection.js';
import type { EdgeContext } from './context.js';
import type { Durable, Ephemeral, Feed, Group } from './feed.js';
import { withLinks } from './media-link.js';
import { close, isFull } from './outbound.js';
import { isLagging, pingDevice } from './pulse.js';
import { follow, isOwn, isStreamed, type Pieces, piecesOf } from './streams.js';
import { toTicks } from './ticks.js';

/** Bytes given to the groups of a feed between two looks at its sockets' buffers: by so much a stuck one may go over the mark. */
const look_bytes = 64 * 1024;

/**
 * The next durable frame of a feed, whose `last` it is already: to every live connection in one publish per group. Who asked for
 * it gets the same bytes with its `id`, in the same place of the order.
 */
export function handOut(edge: EdgeContext, feed: Feed, frame: Durable): void {
  const own = addressees(edge, feed, frame);
  const left: DeviceConnection[] = own === undefined ? [] : [...own.keys()];
  if (frame.except_device_id !== undefined)
    for (const connection of feed.live) if (connection.device_id === frame.except_device_id) left.push(connection);

  const linked = feed.groups.some(({ links, count }) => links && count > 0) ? withLinks(edge, feed.tenant_id, frame.body) : frame.body;
  const shownTo = new Map<Uint8Array, Uint8Array>();
  const shown = (body: Uint8Array): Uint8Array => {
    const known = shownTo.get(body) ?? splice(body, { cursor: frame.cursor });
    shownTo.set(body, known);
    return known;
  };
  for (const group of feed.groups) {
    const body = group.links ? linked : frame.body;
    if (group.count > 0) publish(edge, feed, group, group.cursors ? shown(body) : body, left);
  }
  if (own !== undefined)
    for (const [connection, ids] of own) {
      const { member } = connection.state as { member: Member };
      sendAddressed(connection, member.group.links ? { ...frame, body: linked } : frame, ids, member.group.cursors);
    }
  if (frame.message_id !== undefined && streaming(feed))
    for (const connection of feed.live) follow(memberOf(connection)?.streams, frame.type, frame.message_id);
  edge.meters.frames_out.add(feed.live.size, { class: 'durable' });
  // A look whether it has arrived: a push waits for the answer.
  if (frame.push && feed.ping_at === 0) feed.ping_at = edge.time.tick + toTicks(edge.config.push_ping_ms);
  given(edge, feed, frame.body.length);
  if (feed.behind.size > 0) wakeBehind(edge, feed);
}

/** Live connections for which the frame answers something. */
function addressees(edge: EdgeContext, feed: Feed, frame: Durable): Map<DeviceConnection, RequestId[]> | undefined {
  let own: Map<DeviceConnection, RequestId[]> | undefined;
  const add = (connection: DeviceConnection, ids: RequestId[]) => {
    own ??= new Map();
    own.set(connection, [...(own.get(connection) ?? []), ...ids]);
  };
  if (frame.origin !== undefined) {
    const origin = edge.connections.get(frame.origin.connection_id);
    if (origin?.peer === 'device' && memberOf(origin)?.feed === feed) {
      if (origin.state.kind !== 'live') answerWhenRead(edge, origin, frame.origin.n, frame.cursor);
      else {
        const request = edge.forward.settle(origin, frame.origin.n);
        if (request !== undefined) measure(edge, request);
        if (request?.id !== undefined) add(origin, [request.id]);
      }
    } else if (origin?.peer === 'device') edge.forward.settle(origin, frame.origin.n);
  }
  const awaited = feed.awaited.size === 0 ? undefined : feed.awaited.get(frame.cursor);
  for (const { connection } of awaited ?? [])
    if (connection.state.kind === 'live') add(connection, takeAwaited(feed, frame.cursor, connection));
  return own;
}

/** To every member of a group but those in `left`. */
function publish(edge: EdgeContext, feed: Feed, group: Group, data: Uint8Array, left: readonly DeviceConnection[]): void {
  const out = left.filter((connection) => memberOf(connection)?.group === group);
  if (out.length === 0) edge.groups.publish(group.name, data);
  else if (out.length === 1) out[0]!.socket.publish(group.name, data);
  else
    for (const connection of feed.live)
      if (memberOf(connection)?.group === group && !out.includes(connection)) connection.socket.send(data);
}

/** Whether a live connection is given pieces of its own. */
const streaming = ({ groups, reasoning_count }: Feed): boolean =>
  reasoning_count > 0 || groups.some(({ delta, count }) => delta && count > 0);

/** A live-only frame, not stale, whose time has come. */
export function giveEphemeral(edge: EdgeContext, feed: Feed, frame: Ephemeral): void {
  if (frame.to !== undefined) {
    const to = edge.connections.get(frame.to);
    if (to?.peer !== 'device' || memberOf(to)?.feed !== feed) return;
    if (to.state.kind === 'live') to.socket.send(frame.body);
    else holdFor(to, { ...frame, body: frame.body.slice() });
    return;
  }
  const { type } = frame;
  const streamed = isStreamed(type) ? type : undefined;
  // Of reasoning nobody hears who has not asked for it.
  const hears = (connection: DeviceConnection) => type !== 'reasoning.delta' || memberOf(connection)?.streams?.reasoning === true;
  const slow = frame.key === '' ? [] : setAside(edge, feed, hears);
  if (type !== 'reasoning.delta')
    for (const { name, delta, count } of feed.groups)
      if (count > 0 && !(delta && streamed !== undefined)) edge.groups.publish(name, frame.body);
  if (streamed !== undefined && streaming(feed)) givePieces(feed, streamed, frame.body);
  for (const connection of slow) pingDevice(edge, connection, memberOf(connection)!);
  edge.meters.frames_out.add(feed.live.size, { class: 'ephemeral' });
  if (feed.behind.size > 0) {
    // One copy for all who wait: the bytes belong to the bus.
    const kept = { ...frame, body: frame.body.slice() };
    for (const connection of feed.behind) if (hears(connection)) holdFor(connection, kept);
  }
  given(edge, feed, frame.body.length);
}

/** To each that has asked for it, what it lacks of the text. */
function givePieces(feed: Feed, type: 'message.update' | 'reasoning.delta', body: Uint8Array): void {
  let pieces: Pieces | undefined;
  for (const connection of feed.live) {
    const streams = memberOf(connection)?.streams;
    if (streams === undefined || !isOwn(streams, type)) continue;
    pieces ??= piecesOf(body);
    const piece = pieces(streams);
    if (piece !== undefined) connection.socket.send(piece);
  }
}

/** Those that lag get the newest update when they have caught up, instead of every one; returns the slow ones that get this one. */
function setAside(edge: EdgeContext, feed: Feed, hears: (connection: DeviceConnection) => boolean): DeviceConnection[] {
  const slow: DeviceConnection[] = [];
  for (const connection of feed.live) {
    const { state } = connection;
    if (state.kind !== 'live' || !hears(connection)) continue;
    if (isLagging(edge, connection, state.member)) holdUpdates(edge, connection, state.member, feed.last);
    else if (state.member.slow) slow.push(connection);
  }
  return slow;
}

function given(edge: EdgeContext, feed: Feed, bytes: number): void {
  feed.handed += bytes;
  if (feed.handed < look_bytes) return;
  feed.handed = 0;
  for (const connection of feed.live) {
    const { state } = connection;
    // Everything up to `last` is in its socket: it goes on from there, out of the outbox.
    if (state.kind === 'live' && isFull(edge, connection)) fallBehind(edge, connection, state.member, feed.last);
  }
}

/** Live connections have lost something: they come back and ask. */
export function reconnectLive(edge: EdgeContext, feed: Feed): void {
  for (const connection of [...feed.live]) close(edge, connection, 'restarting', 'frames were lost; sync');
}
