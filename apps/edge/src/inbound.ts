import { isUtf8 } from 'node:buffer';
import { decode, glance, limits, rowOf, type UpFrame, type UpRow } from '@iris/protocol';
import { admit } from '@iris/runtime';
import { type DeviceConnection, type Member, memberOf } from './connection.js';
import type { EdgeContext } from './context.js';
import { greet } from './hello.js';
import { ack } from './local/ack.js';
import { mediaPull } from './local/media-pull.js';
import { mediaUploadEnd, mediaUploadStart, binary as uploadBytes } from './local/media-upload.js';
import { ping } from './local/ping.js';
import { sync } from './local/sync.js';
import { holdBehindUploads } from './local/uploads.js';
import { close, isFull, refuse, textOf } from './outbound.js';
import { toTicks } from './ticks.js';

/** One message of a device: decoded once, checked, and passed on or answered here. */
export function receive(edge: EdgeContext, connection: DeviceConnection, data: Uint8Array, binary: boolean) {
  connection.heard = edge.time.tick;
  const { state } = connection;
  if (state.kind === 'greeting') return greet(edge, connection, state, data, binary);
  if (state.kind === 'closed') return;
  const { member } = state;
  // Large frames of an upload are bounded by what was declared; many small ones cost as much as any others.
  const free = binary && member.uploads?.open !== undefined && data.length >= edge.config.upload_frame_bytes;
  const wait = free ? 0 : takeFrame(edge, member);
  if (binary && wait > 0 && member.uploads?.open === undefined) return limited(edge, connection, member, undefined, wait);
  if (binary) return uploadBytes(edge, connection, member, data, wait);
  if (data.length > limits.frame_bytes) return close(edge, connection, 'too_big');
  if (wait > 0 || sendsWait(edge, member) > 0) {
    // What is refused whatever it says costs no more than to see what it is called.
    const said = glance(data);
    const wait_ms = said?.type === 'message.send' ? Math.max(wait, sendsWait(edge, member)) : wait;
    if (said !== undefined && wait_ms > 0) {
      if (!isUtf8(data)) return close(edge, connection, 'not_utf8');
      edge.meters.frames_in.add(1, { peer: 'device', type: rowOf(said.type)?.up === undefined ? 'unknown' : said.type });
      return limited(edge, connection, member, said.id, wait_ms);
    }
  }
  const text = textOf(data);
  if (text === undefined) return close(edge, connection, 'not_utf8');

  const decoded = decode(text);
  const known = decoded.kind === 'frame' ? decoded.frame.type : decoded.kind;
  edge.meters.frames_in.add(1, { peer: 'device', type: known });
  const id = decoded.kind === 'frame' ? decoded.frame.id : decoded.id;
  if (wait > 0) return limited(edge, connection, member, id, wait);
  switch (decoded.kind) {
    case 'malformed':
      refuse(edge, connection, id, 'unsupported', decoded.message);
      return countMalformed(edge, connection, member);
    case 'unknown':
      // Whoever speaks a later version may go on speaking it.
      return id === undefined ? undefined : refuse(edge, connection, id, 'unsupported', decoded.message);
    case 'version':
    case 'invalid':
      return refuse(edge, connection, id, 'unsupported', decoded.message);
    case 'frame':
      // The bytes as they came, unless something in them had to be cleaned.
      return act(edge, connection, member, decoded.frame, decoded.row, () =>
        decoded.text === text ? data.slice() : new TextEncoder().encode(decoded.text),
      );
  }
}

function act(edge: EdgeContext, connection: DeviceConnection, member: Member, frame: UpFrame, row: UpRow, body: () => Uint8Array) {
  switch (frame.type) {
    case 'hello':
      return refuse(edge, connection, frame.id, 'unsupported', 'hello was said already');
    case 'ping':
      return ping(edge, connection, frame);
    case 'ack':
      return ack(edge, connection, frame);
    case 'sync':
      return sync(edge, connection, frame);
    case 'media.upload.start':
      return mediaUploadStart(edge, connection, member, frame);
    case 'media.upload.end':
      return mediaUploadEnd(edge, connection, member, frame);
    case 'media.pull':
      return mediaPull(edge, connection, member, frame);
  }
  if (frame.type === 'message.send') {
    const { sends_per_second, sends_burst } = member.feed.rates;
    const next = admit(member.sends_full_at, edge.clock.now(), sends_per_second, sends_burst);
    if (next < 0) return limited(edge, connection, member, frame.id, -next);
    member.sends_full_at = next;
  }
  // Answers cost memory until they are read: who does not read what was asked before has to wait.
  if (!row.changes && isFull(edge, connection))
    return refuse(edge, connection, frame.id, 'rate_limited', 'read what was answered first', 1_000);
  if (connection.in_flight_bytes > edge.config.in_flight_bytes)
    return refuse(edge, connection, frame.id, 'rate_limited', 'too much is unanswered', 1_000);
  const request = { type: frame.type, id: frame.id, body: body(), deadline_ms: row.deadline_ms };
  const ask = () => edge.forward.ask(connection, request);
  const refs = frame.type === 'message.send' ? (frame.payload.media_refs ?? []) : [];
  if (member.uploads === undefined || !holdBehindUploads(member.uploads, refs, ask)) ask();
}

/** Milliseconds until the device may send again. */
function sendsWait(edge: EdgeContext, member: Member): number {
  const { sends_per_second, sends_burst } = member.feed.rates;
  return Math.max(0, -admit(member.sends_full_at, edge.clock.now(), sends_per_second, sends_burst));
}

/** Take one frame from the connection's bucket; 0, or milliseconds to wait. */
function takeFrame(edge: EdgeContext, member: Member): number {
  const { frames_per_second, frames_burst } = member.feed.rates;
  const next = admit(member.frames_full_at, edge.clock.now(), frames_per_second, frames_burst);
  if (next < 0) return -next;
  member.frames_full_at = next;
  return 0;
}

function limited(edge: EdgeContext, connection: DeviceConnection, member: Member, id: number | string | undefined, wait: number): void {
  edge.meters.limited.add(1, { what: 'frame' });
  refuse(edge, connection, id, 'rate_limited', 'too many frames', wait);
  const minute = toTicks(60_000);
  if (edge.time.tick - member.refused_since >= minute) {
    member.refused = 0;
    member.refused_since = edge.time.tick;
  }
  // Told so often, it does not listen.
  if (++member.refused > Math.max(100, member.feed.rates.frames_burst) && memberOf(connection) !== undefined)
    close(edge, connection, 'rate');
}

function countMalformed(edge: EdgeContext, connection: DeviceConnection, member: Member): void {
  if (edge.time.tick - member.malformed_since >= toTicks(60_000)) {
    member.malformed = 0;
    member.malformed_since = edge.time.tick;
  }
  if (++member.malformed >= limits.malformed_per_minute && memberOf(connection) !== undefined) close(edge, connection, 'protocol');
}
