import type { Cursor } from '@iris/protocol';
import { type DeviceConnection, type Member, positionOf } from './connection.js';
import type { EdgeContext } from './context.js';

/**
 * A WebSocket ping carries the position as decimal text behind everything sent before it; the pong that echoes it is the
 * device's receipt. A position counts only from where the device has everything: before `sync` has closed the range below
 * its hello, live frames must not pull the watermark past what it has not been given.
 */
export const confirmable = ({ state }: DeviceConnection, member: Member): Cursor =>
  member.unbroken && (state.kind === 'live' || state.kind === 'catching_up') ? positionOf(state) : member.watermark;

const utf8 = new TextEncoder();
export function pingDevice(edge: EdgeContext, connection: DeviceConnection, member: Member): void {
  const position = confirmable(connection, member);
  if (member.pings_out++ === 0) member.pinged_at = edge.clock.now();
  member.pinged = Math.max(member.pinged, position);
  connection.socket.ping(utf8.encode(String(position)));
}

/** A ping was answered: how long it took says how much is on the way. */
export function answered(edge: EdgeContext, member: Member): void {
  if (member.pings_out === 0) return;
  const now = edge.clock.now();
  member.answers_pings = true;
  member.slow = now - member.pinged_at > edge.config.slow_rtt_ms;
  member.pings_out--;
  member.pinged_at = now;
}

/**
 * Whether an update would only wait: in the socket's buffer, or, where no buffer shows it, in the network, of which
 * only unanswered pings tell. A slow device gets one update at a time, each with a ping behind it; others are trusted for `lag_ms`.
 */
export function isLagging(edge: EdgeContext, connection: DeviceConnection, member: Member): boolean {
  if (connection.socket.buffered() > edge.config.lag_mark_bytes) return true;
  if (member.pings_out === 0 || !member.answers_pings) return false;
  return member.slow || edge.clock.now() - member.pinged_at > edge.config.lag_ms;
}
