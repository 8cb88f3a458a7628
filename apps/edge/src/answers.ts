import type { ToEdge } from '@iris/bus';
import { type Cursor, type RequestId, splice } from '@iris/protocol';
import { type DeviceConnection, memberOf, positionOf } from './connection.js';
import type { EdgeContext } from './context.js';
import { type Feed, seek } from './feed.js';
import type { InFlight } from './forward.js';
import { withLinks } from './media-link.js';
import { refuse, respond } from './outbound.js';

type Answer = Extract<ToEdge, { kind: 'answer' }>;

/** The session has answered request `n` of a device that has said hello. */
export function answer(edge: EdgeContext, connection: DeviceConnection, record: Answer): void {
  const request = edge.forward.settle(connection, record.n);
  if (request === undefined) return;
  measure(edge, request);
  const { state } = connection;
  if (state.kind !== 'live' && state.kind !== 'catching_up') return;
  if (record.cursor === undefined) {
    // Without an `id` nobody is told the outcome, unless it failed.
    if (record.body.length > 0 && (request.id !== undefined || isError(record.body)))
      respond(edge, connection, linkedFor(edge, connection, record.body), request.id);
    return;
  }
  if (request.id === undefined) return;
  if (record.cursor <= positionOf(state)) {
    // It has gone by without the `id`.
    if (record.body.length > 0) respond(edge, connection, linkedFor(edge, connection, record.body), request.id);
    else void fetchAnswer(edge, connection, request.id, record.cursor);
  } else {
    awaitFrame(state.member.feed, record.cursor, connection, request.id);
    seek(edge, state.member.feed, record.cursor);
  }
}

/** The durable frame that answers `n` is being handed to a connection that is catching up: it will come to it by reading. */
export function answerWhenRead(edge: EdgeContext, connection: DeviceConnection, n: number, cursor: Cursor): void {
  const request = edge.forward.settle(connection, n);
  if (request === undefined) return;
  measure(edge, request);
  const { state } = connection;
  if (request.id !== undefined && state.kind === 'catching_up') awaitFrame(state.member.feed, cursor, connection, request.id);
}

/** The durable frame that answers `n` has passed this edge before anybody knew that it does. */
export function answerLate(edge: EdgeContext, connection: DeviceConnection, n: number, frame: { cursor: Cursor; body: Uint8Array }): void {
  const request = edge.forward.settle(connection, n);
  if (request === undefined) return;
  measure(edge, request);
  const { state } = connection;
  if (request.id === undefined || (state.kind !== 'live' && state.kind !== 'catching_up')) return;
  // One that is behind has yet to come to it: a copy now would be out of its place, and the frame itself the second.
  if (frame.cursor > positionOf(state)) awaitFrame(state.member.feed, frame.cursor, connection, request.id);
  else respond(edge, connection, linkedFor(edge, connection, frame.body), request.id);
}

/** The same, when even the frame has to be read again. */
async function fetchAnswer(edge: EdgeContext, connection: DeviceConnection, id: RequestId, cursor: Cursor): Promise<void> {
  const member = memberOf(connection)!;
  let body: Uint8Array | undefined;
  try {
    const page = await edge.pages.read(member.feed.tenant_id, cursor - 1, { limit: 1 });
    const [entry] = page.entries;
    if (entry?.cursor === cursor) body = entry.body;
  } catch (error) {
    edge.log.warn('edge.answer_unread', { error });
    if (memberOf(connection) !== undefined) refuse(edge, connection, id, 'internal', 'the answer cannot be read now');
    return;
  }
  if (memberOf(connection) === undefined) return;
  if (body === undefined) refuse(edge, connection, id, 'not_found', 'gone meanwhile');
  else respond(edge, connection, linkedFor(edge, connection, body), id);
}

/** Answers at or below `at` whose frame was not there to be read: it was deleted meanwhile. */
export function answerMissed(edge: EdgeContext, connection: DeviceConnection, at: Cursor): void {
  const feed = memberOf(connection)?.feed;
  if (feed === undefined || feed.awaited.size === 0) return;
  for (const cursor of [...feed.awaited.keys()])
    if (cursor <= at) for (const id of takeAwaited(feed, cursor, connection)) refuse(edge, connection, id, 'not_found', 'gone meanwhile');
}

/** A durable frame for one connection alone: with the `id` of the request that it answers, and its cursor when that is shown. */
export function sendAddressed(
  connection: DeviceConnection,
  frame: { cursor: Cursor; body: Uint8Array },
  ids: readonly RequestId[],
  show: boolean,
): void {
  const shown = show ? { cursor: frame.cursor } : {};
  const [first, ...more] = ids;
  connection.socket.send(splice(frame.body, { ...shown, ...(first === undefined ? {} : { id: first }) }));
  // The same send asked twice has the same frame for an answer; each request gets its own.
  for (const id of more) connection.socket.send(splice(frame.body, { id }));
}

/** The requests of `connection` that wait for the frame at `cursor`. They wait no longer. */
export function takeAwaited(feed: Feed, cursor: Cursor, connection: DeviceConnection): RequestId[] {
  const waiting = feed.awaited.size === 0 ? undefined : feed.awaited.get(cursor);
  if (waiting === undefined) return [];
  const left = waiting.filter((one) => one.connection !== connection);
  if (left.length > 0) feed.awaited.set(cursor, left);
  else feed.awaited.delete(cursor);
  return waiting.filter((one) => one.connection === connection).map((one) => one.id);
}

export function forgetAwaited(feed: Feed, connection: DeviceConnection): void {
  for (const cursor of [...feed.awaited.keys()]) takeAwaited(feed, cursor, connection);
}

export function measure(edge: EdgeContext, request: InFlight): void {
  edge.meters.request_seconds.record((edge.clock.now() - request.begun) / 1000, { type: request.type });
}

/** The frame as this device asked for it. */
function linkedFor(edge: EdgeContext, connection: DeviceConnection, body: Uint8Array): Uint8Array {
  const member = memberOf(connection);
  return member?.group.links ? withLinks(edge, member.feed.tenant_id, body) : body;
}

function awaitFrame(feed: Feed, cursor: Cursor, connection: DeviceConnection, id: RequestId): void {
  const waiting = feed.awaited.get(cursor);
  if (waiting) waiting.push({ connection, id });
  else feed.awaited.set(cursor, [{ connection, id }]);
}

const errorStart = new TextEncoder().encode('{"v":1,"type":"error"');
const isError = (frame: Uint8Array): boolean => errorStart.every((byte, i) => frame[i] === byte);
