import { encode, limits, RequestError, type RequestId, type UpFrameOf, unsupported } from '@iris/protocol';
import { type DeviceConnection, type Member, memberOf } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { askAboutMedia } from '../media-ask.js';
import { refuse, respond } from '../outbound.js';
import { type PullWindow, pullWindow } from './pull-window.js';

interface Pull {
  readonly id: RequestId | undefined;
  readonly payload: UpFrameOf<'media.pull'>['payload'];
}

/** What a connection pulls: one file at a time. */
export interface Pulls {
  readonly waiting: Pull[];
  /** Of the one that is on its way. */
  window: PullWindow | undefined;
  /** Something has changed that it may wait for. */
  wake: (() => void) | undefined;
}

const waitingMax = 64;
const utf8 = new TextEncoder();
/** What stands before the number in a ping that follows a chunk. Pings that carry a position are digits alone. */
const mark = 'p';

export function mediaPull(edge: EdgeContext, connection: DeviceConnection, member: Member, { id, payload }: UpFrameOf<'media.pull'>): void {
  const pull: Pull = { id, payload };
  if (member.pulls === undefined) {
    member.pulls = { waiting: [pull], window: undefined, wake: undefined };
    void run(edge, connection, member, member.pulls);
  } else if (member.pulls.waiting.length >= waitingMax) refuse(edge, connection, id, 'rate_limited', 'too many pulls wait', 1_000);
  else member.pulls.waiting.push(pull);
}

async function run(edge: EdgeContext, connection: DeviceConnection, member: Member, pulls: Pulls): Promise<void> {
  for (let pull = pulls.waiting[0]; pull !== undefined && isOpen(connection, member); pull = pulls.waiting[0]) {
    try {
      await give(edge, connection, member, pulls, pull);
    } catch (error) {
      fault(edge, connection, pull.id, error);
    }
    pulls.waiting.shift();
  }
  member.pulls = undefined;
}

async function give(edge: EdgeContext, connection: DeviceConnection, member: Member, pulls: Pulls, { id, payload }: Pull): Promise<void> {
  const { tenant_id } = member.feed;
  const { media_id, offset = 0, length } = payload;
  const { object_id, entry } = await askAboutMedia(edge, tenant_id, 'media.find', { media_id, device_id: member.device_id });
  if (offset > entry.size) throw unsupported(`offset: the file has ${entry.size} bytes`);
  const reader = await edge.media.read(tenant_id, object_id, { offset, lent: true, ...(length === undefined ? {} : { length }) });
  if (reader === undefined) throw new RequestError('internal', 'the file cannot be read now');
  if (!isOpen(connection, member)) return;
  respond(edge, connection, encode({ type: 'media.pull.ack', payload: entry as never }), id);
  const window = pullWindow(limits.pull_chunk_bytes);
  pulls.window = window;
  const ping = (number: number) => connection.socket.ping(utf8.encode(`${mark}${number}`));
  ping(window.begin(edge.clock.now()));
  let ok = true;
  try {
    for await (const chunk of inChunks(reader.bytes, limits.pull_chunk_bytes)) {
      await turn(edge, connection, member, pulls, window);
      if (!isOpen(connection, member)) return;
      connection.socket.send(chunk, true);
      const behind = window.sent(chunk.byteLength, edge.clock.now());
      if (behind !== undefined) ping(behind);
      edge.meters.media_bytes.add(chunk.byteLength, { direction: 'down' });
    }
  } catch (error) {
    // Its beginning has been given: the end says that it is not whole.
    edge.log.warn('edge.pull_failed', { media_id, error });
    ok = false;
  }
  pulls.window = undefined;
  if (isOpen(connection, member)) respond(edge, connection, encode({ type: 'media.pull.end', payload: { ok, media_id } }), id);
}

/** The same bytes in pieces of one size, the last one shorter. Each is used before the next one is asked for. */
async function* inChunks(pieces: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  const rest = new Uint8Array(size);
  let kept = 0;
  for await (const piece of pieces) {
    let at = 0;
    if (kept > 0) {
      at = Math.min(size - kept, piece.byteLength);
      rest.set(piece.subarray(0, at), kept);
      kept += at;
      if (kept < size) continue;
      yield rest;
      kept = 0;
    }
    for (; at + size <= piece.byteLength; at += size) yield piece.subarray(at, at + size);
    rest.set(piece.subarray(at));
    kept = piece.byteLength - at;
  }
  if (kept > 0) yield rest.subarray(0, kept);
}

/** Resolves when a chunk may go, or nothing may any more. One that waits in the socket already is as much as others may find in front of them. */
async function turn(edge: EdgeContext, connection: DeviceConnection, member: Member, pulls: Pulls, window: PullWindow): Promise<void> {
  const left = () => (connection.socket.buffered() > 0 ? Number.POSITIVE_INFINITY : window.wait(edge.clock.now()));
  for (let ms = left(); ms > 0 && isOpen(connection, member); ms = left())
    await new Promise<void>((resolve) => {
      const timer = Number.isFinite(ms) ? edge.clock.after(ms, resolve) : undefined;
      pulls.wake = () => {
        timer?.cancel();
        resolve();
      };
    });
}

const isOpen = (connection: DeviceConnection, member: Member): boolean => memberOf(connection) === member;

function fault(edge: EdgeContext, connection: DeviceConnection, id: RequestId | undefined, error: unknown) {
  if (error instanceof RequestError) return refuse(edge, connection, id, error.code, error.message, error.retry_after_ms);
  edge.log.warn('edge.pull_failed', { error });
  refuse(edge, connection, id, 'internal', 'the file cannot be read now');
}

/** A pong that answers a ping behind a chunk. @returns false when it is none */
export function pullPong(edge: EdgeContext, { pulls }: Member, data: Uint8Array): boolean {
  if (data[0] !== mark.charCodeAt(0)) return false;
  const number = Number(Buffer.from(data.subarray(1, 17)).toString());
  if (Number.isSafeInteger(number)) pulls?.window?.arrived(number, edge.clock.now());
  wakePull(pulls);
  return true;
}

/** There is room in the socket, or it is gone. */
export function wakePull(pulls: Pulls | undefined): void {
  const wake = pulls?.wake;
  if (pulls === undefined || wake === undefined) return;
  pulls.wake = undefined;
  wake();
}
