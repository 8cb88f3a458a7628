import { type ConnectionId, type Cursor, closeCodes, type DeviceId, type TenantId } from '@iris/protocol';
import type { AgentLink } from './agent/link.js';
import { pump } from './catch-up.js';
import { type DeviceConnection, memberOf } from './connection.js';
import type { EdgeContext } from './context.js';
import type { Feed } from './feed.js';
import { pullPong, wakePull } from './local/media-pull.js';
import { answered, confirmable, pingDevice } from './pulse.js';
import { toTicks } from './ticks.js';

export function pong(edge: EdgeContext, connection: DeviceConnection, data: Uint8Array): void {
  connection.heard = edge.time.tick;
  const member = memberOf(connection);
  if (member === undefined || pullPong(edge, member, data)) return;
  const cursor = cursorIn(data);
  if (cursor === undefined) return;
  answered(edge, member);
  // Nothing that no ping has said: anyone can send a pong.
  confirm(edge, connection, Math.min(cursor, member.pinged));
  // What waited for this answer goes on.
  pump(edge, connection);
}

/** The device has everything up to `cursor`, as far as it has been given it. */
export function confirm(edge: EdgeContext, connection: DeviceConnection, cursor: Cursor): void {
  const member = memberOf(connection);
  if (member === undefined) return;
  const known = Math.min(cursor, confirmable(connection, member));
  if (known <= member.watermark) return;
  member.watermark = known;
  edge.confirmed.add(connection);
}

function cursorIn(data: Uint8Array): Cursor | undefined {
  if (data.length === 0 || data.length > 16) return undefined;
  let cursor = 0;
  for (const byte of data) {
    if (byte < 48 || byte > 57) return undefined;
    cursor = cursor * 10 + (byte - 48);
  }
  return cursor;
}

/** Put a connection into the rounds: it is visited once every `ping_ms`. */
export function enroll(edge: EdgeContext, connection: DeviceConnection | AgentLink): void {
  edge.rounds[edge.time.tick % edge.rounds.length]!.add(connection);
}

export function dismiss(edge: EdgeContext, connection: DeviceConnection | AgentLink): void {
  for (const round of edge.rounds) if (round.delete(connection)) return;
}

/** Each tick: the connections whose turn it is. */
export function roundTick(edge: EdgeContext): void {
  const { tick } = edge.time;
  const silentTicks = toTicks(edge.config.silent_ms);
  for (const connection of edge.rounds[tick % edge.rounds.length]!) {
    if (tick - connection.heard > silentTicks) {
      edge.meters.closed.add(1, { code: 1006 });
      connection.socket.terminate();
      continue;
    }
    if (connection.in_flight?.size === 0) connection.in_flight = undefined;
    const member = connection.peer === 'device' ? memberOf(connection) : undefined;
    if (connection.peer === 'device' && member !== undefined) {
      pingDevice(edge, connection, member);
      // A `drained` that was missed must not hold anybody up for ever.
      pump(edge, connection);
      wakePull(member.pulls);
    } else if (connection.peer === 'agent') connection.socket.ping(nothing);
  }
}
const nothing = new Uint8Array();

/** Each tick: feeds that have handed out a frame worth a push ask whether it has arrived. */
export function pushPingTick(edge: EdgeContext, feeds: Iterable<Feed>): void {
  for (const feed of feeds) {
    if (feed.ping_at === 0 || edge.time.tick < feed.ping_at) continue;
    feed.ping_at = 0;
    for (const connection of feed.live) pingDevice(edge, connection, memberOf(connection)!);
  }
}

const atOnce = 500;

/** Every second: new watermarks, in one trip. */
export async function writeMarks(edge: EdgeContext): Promise<void> {
  const connections = [...edge.confirmed];
  edge.confirmed.clear();
  for (let at = 0; at < connections.length; at += atOnce) {
    const some = connections.slice(at, at + atOnce);
    try {
      await edge.outbox.confirm(some.flatMap((connection) => markOf(connection) ?? []));
    } catch (error) {
      edge.log.warn('edge.confirm_failed', { error });
      for (const connection of connections.slice(at)) if (memberOf(connection) !== undefined) edge.confirmed.add(connection);
      return;
    }
  }
}

export function markOf(connection: DeviceConnection): { tenant_id: TenantId; device_id: DeviceId; cursor: Cursor } | undefined {
  const member = memberOf(connection);
  return member && { tenant_id: member.feed.tenant_id, device_id: member.device_id, cursor: member.watermark };
}

/** Each tick: say again which devices this edge holds, every one of them once in `refresh_ms`; those that moved on are closed. */
export function refreshTick(edge: EdgeContext): void {
  const every = toTicks(edge.config.refresh_ms);
  for (let round = edge.time.tick % every; round < edge.rounds.length; round += every) void refresh(edge, edge.rounds[round]!);
}

export async function refresh(edge: EdgeContext, connections: Iterable<DeviceConnection | AgentLink>): Promise<void> {
  const held: { tenant_id: TenantId; device_id: DeviceId; connection_id: ConnectionId }[] = [];
  for (const connection of connections) {
    const member = connection.peer === 'device' ? memberOf(connection) : undefined;
    if (member !== undefined)
      held.push({ tenant_id: member.feed.tenant_id, device_id: member.device_id, connection_id: connection.connection_id });
  }
  for (let at = 0; at < held.length; at += atOnce) {
    try {
      for (const connection_id of await edge.outbox.refresh(edge.edge_id, held.slice(at, at + atOnce))) {
        const moved = edge.connections.get(connection_id);
        moved?.socket.close(closeCodes.replaced, 'replaced');
      }
    } catch (error) {
      edge.log.warn('edge.refresh_failed', { error });
      return;
    }
  }
}
