import type { OutboxPage } from '@iris/outbox';
import { type CloseReason, closeCodes, type ErrorCode, encode, type RequestId, splice } from '@iris/protocol';
import type { CatchingUp, DeviceConnection, Member } from './connection.js';
import type { EdgeContext } from './context.js';
import { toTicks } from './ticks.js';

/** A frame for one connection: an answer or an error. Never dropped while the connection lives. */
export function respond(edge: EdgeContext, connection: DeviceConnection, frame: Uint8Array, id: RequestId | undefined): void {
  connection.socket.send(id === undefined ? frame : splice(frame, { id }));
  edge.meters.frames_out.add(1, { class: 'response' });
  // Whoever asks and asks and never reads: there is no other bound on what answers cost.
  if (connection.socket.buffered() > edge.config.hard_mark_bytes) connection.socket.terminate();
}

/** @param retry_after_ms only with `rate_limited` */
export function refuse(
  edge: EdgeContext,
  connection: DeviceConnection,
  id: RequestId | undefined,
  code: ErrorCode,
  message: string,
  retry_after_ms?: number,
): void {
  edge.meters.errors.add(1, { code });
  respond(edge, connection, errorFrame(code, message, retry_after_ms), id);
}

export const errorFrame = (code: ErrorCode, message: string, retry_after_ms?: number): Uint8Array =>
  encode({
    type: 'error',
    payload: { code, message, ...(retry_after_ms === undefined ? {} : { retry_after_ms: Math.max(1, Math.ceil(retry_after_ms)) }) },
  });

/** End a connection; what was sent before still goes out. Its `closed` event follows. */
export function close(edge: EdgeContext, connection: DeviceConnection, reason: CloseReason, text: string = reason): void {
  edge.meters.closed.add(1, { code: closeCodes[reason] });
  connection.socket.close(closeCodes[reason], text);
}

const unseeded_ms = 2_000;
/**
 * Without a trusted sequence the outbox says nothing of what there is, and only a hello gives it one: a connection that has waited
 * for that long enough is sent to say hello again.
 */
export function comeBackIfUnseeded(edge: EdgeContext, connection: DeviceConnection, state: CatchingUp, page: OutboxPage): void {
  if (page.unseeded && state.stuck_since > 0 && edge.time.tick - state.stuck_since >= toTicks(unseeded_ms))
    close(edge, connection, 'restarting', 'the outbox was lost; sync');
}

export const onlineFrame: Uint8Array = encode({ type: 'status', payload: { state: 'online' } });
export const restartingFrame: Uint8Array = encode({ type: 'status', payload: { state: 'restarting' } });

/** Become a member of its publish group. */
export function join(connection: DeviceConnection, member: Member): void {
  const { feed } = member;
  feed.behind.delete(connection);
  feed.live.add(connection);
  member.group.count++;
  if (member.streams?.reasoning) feed.reasoning_count++;
  connection.socket.join(member.group.name);
}

export function leave(connection: DeviceConnection, member: Member): void {
  const { feed } = member;
  if (!feed.live.delete(connection)) return;
  member.group.count--;
  if (member.streams?.reasoning) feed.reasoning_count--;
  connection.socket.leave(member.group.name);
}

/** Whether the connection reads so slowly that it gets no more work to be answered. */
export const isFull = (edge: EdgeContext, connection: DeviceConnection): boolean =>
  connection.socket.buffered() > edge.config.high_mark_bytes;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** The text of a text frame; undefined when it is not UTF-8. */
export function textOf(data: Uint8Array): string | undefined {
  try {
    return utf8.decode(data);
  } catch {
    return undefined;
  }
}
