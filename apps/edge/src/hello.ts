import type { HelloAnswer, ToEdge } from '@iris/bus';
import {
  type CloseCode,
  closeCodes,
  type DeviceCaps,
  type DeviceId,
  decode,
  deviceCaps,
  encode,
  limits,
  splice,
  type TenantId,
  tenantOfToken,
  type UpFrameOf,
} from '@iris/protocol';
import { measure } from './answers.js';
import { fallBehind } from './catch-up.js';
import { enroll } from './confirm.js';
import type { DeviceConnection, Greeting, Member } from './connection.js';
import type { EdgeContext } from './context.js';
import { type Feed, openFeed, seek } from './feed.js';
import { wasRevoked } from './good-tokens.js';
import { knock, knocked, unanswered } from './knock.js';
import { takeBucket } from './leave.js';
import { close, errorFrame, join, onlineFrame, refuse, textOf } from './outbound.js';
import { pingDevice } from './pulse.js';
import { pastRev } from './repair.js';
import { begun, streamsOf } from './streams.js';
import { toTicks } from './ticks.js';
import { toldBy } from './told.js';

/** A frame of a device that has not been told `hello.ack`: the hello itself, or what is sent behind it. */
export function greet(edge: EdgeContext, connection: DeviceConnection, state: Greeting, data: Uint8Array, binary: boolean) {
  if (data.length > (state.hello === undefined ? limits.hello_bytes : limits.frame_bytes)) return close(edge, connection, 'too_big');
  if (state.hello !== undefined) return waitBehind(edge, connection, state, data, binary);
  if (binary) return turnAway(edge, connection, undefined);
  const text = textOf(data);
  if (text === undefined) return close(edge, connection, 'not_utf8');
  const decoded = decode(text);
  if (decoded.kind === 'frame' && decoded.frame.type === 'hello') return hello(edge, connection, state, decoded.frame, decoded.text);
  const id = decoded.kind === 'frame' ? decoded.frame.id : decoded.id;
  const spoken = decoded.kind !== 'version' && !(decoded.kind === 'invalid' && decoded.type === 'hello' && decoded.code === 'unsupported');
  if (spoken) return turnAway(edge, connection, id);
  // Another version, or a hello that says who is there but breaks a rule: it would not do better a second time.
  refuse(edge, connection, id, 'unsupported', decoded.message);
  close(edge, connection, 'protocol');
}

function hello(edge: EdgeContext, connection: DeviceConnection, state: Greeting, frame: UpFrameOf<'hello'>, text: string) {
  const { token, device_id, caps } = frame.payload;
  // What comes behind it waits from now on, whenever it is tried.
  state.hello = { id: frame.id, device_id: device_id as DeviceId, token, caps: deviceCaps(caps) };
  const body = new TextEncoder().encode(text);
  const refuseHello = (message: string, wait_ms: number, reason: 'rate' | 'full') => {
    refuse(edge, connection, frame.id, 'rate_limited', message, wait_ms);
    close(edge, connection, reason);
  };
  const go = () => {
    // A token that names nobody goes the way of a wrong one, to the same answer after the same time.
    connection.tenant_id = tenantOfToken(token) ?? ('-' as TenantId);
    edge.forward.ask(connection, { type: 'hello', id: frame.id, body, deadline_ms: 10_000, address: connection.address });
  };
  const left = () => unanswered(edge, connection);
  const noRoom = (wait_ms: number) => {
    left();
    refuseHello('too many say hello at once', wait_ms, 'full');
  };
  const enter = () => edge.admission.device.enter({ connection, go, left, refuse: noRoom }, edge.clock.now());
  knock(edge, connection, token, enter, (wait_ms) => refuseHello('too many failed hellos from this address', wait_ms, 'rate'));
}

/** The first frame was no hello, or one that names nobody. */
function turnAway(edge: EdgeContext, connection: DeviceConnection, id: number | string | undefined): void {
  refuse(edge, connection, id, 'auth', 'hello first');
  close(edge, connection, 'auth');
}

function waitBehind(edge: EdgeContext, connection: DeviceConnection, state: Greeting, data: Uint8Array, binary: boolean) {
  state.waiting_bytes += data.length;
  if (state.waiting.length >= edge.config.waiting_frames || state.waiting_bytes > edge.config.waiting_bytes)
    return close(edge, connection, 'rate');
  state.waiting.push({ data: data.slice(), binary });
}

/** No `hello` in time. */
export function greetingTick(edge: EdgeContext) {
  const helloTicks = toTicks(edge.config.hello_ms);
  for (const connection of edge.greeting) {
    const { state } = connection;
    if (state.kind !== 'greeting') continue;
    // Oldest first: those behind it are younger.
    if (edge.time.tick - state.since < helloTicks) return;
    if (state.hello !== undefined) {
      // One that is not even being tried after as long again will not be.
      if (connection.asked === 0 && edge.time.tick - state.since >= 2 * helloTicks) connection.socket.close(closeCodes.full, 'no room');
      continue;
    }
    edge.meters.closed.add(1, { code: closeCodes.no_hello });
    connection.socket.close(closeCodes.no_hello, 'no hello');
  }
}

/** What the session says to a hello. `receive` is given what the device sent behind it. */
export function helloAnswered(
  edge: EdgeContext,
  connection: DeviceConnection,
  record: Extract<ToEdge, { kind: 'answer' }>,
  receive: (data: Uint8Array, binary: boolean) => void,
) {
  const request = edge.forward.settle(connection, record.n);
  if (request === undefined) return;
  measure(edge, request);
  const answer = JSON.parse(Buffer.from(record.body).toString()) as HelloAnswer;
  knocked(edge, connection, answer.refused?.code === 'auth' ? undefined : tokenIn(request.body));
  const { state } = connection;
  if (state.kind !== 'greeting' || state.hello === undefined) return takeBack(edge, connection, answer, request.body);
  const { id, device_id, caps } = state.hello;
  if (answer.refused !== undefined) {
    const { code, message, close: code_, retry_after_ms } = answer.refused;
    connection.socket.send(splice(errorFrame(code as 'auth', message, retry_after_ms), id === undefined ? {} : { id }));
    edge.meters.errors.add(1, { code });
    edge.meters.closed.add(1, { code: code_ ?? closeCodes.auth });
    return connection.socket.close((code_ as CloseCode | undefined) ?? closeCodes.auth, code);
  }
  connection.tenant_id = answer.tenant_id;
  connection.device_id = device_id;
  const late = wasRevoked(edge, answer.tenant_id, answer.token_id, device_id) ? 'revoked' : edge.draining ? 'restarting' : undefined;
  if (late !== undefined) {
    takeBack(edge, connection, answer, request.body);
    return close(edge, connection, late);
  }

  const feed = openFeed(edge, answer.tenant_id, answer.head, answer.quotas);
  // What is told now is newer than what the bus may still bring late.
  for (const [key, rev] of answer.revs ?? []) pastRev(feed, key, rev - 1);
  const member = memberFor(edge, feed, device_id, answer, caps);
  begun(member.streams, answer.frames);
  if (edge.greeting.delete(connection)) edge.addresses.leave(connection.address);
  connection.socket.welcome();
  const ack = encode({ type: 'hello.ack', payload: { ...answer.ack, sync_cursor: answer.watermark } as never });
  connection.socket.send(id === undefined ? ack : splice(ack, { id }));
  connection.socket.send(onlineFrame);
  for (const frame of answer.frames) connection.socket.send(Buffer.from(frame));
  enroll(edge, connection);
  if (feed.last === answer.head && feed.repair === undefined) {
    connection.state = { kind: 'live', member };
    join(connection, member);
  } else {
    fallBehind(edge, connection, member, answer.head);
    seek(edge, feed, answer.head);
  }
  // How far away it is; and that it has the snapshot.
  pingDevice(edge, connection, member);
  for (const { data, binary } of state.waiting) receive(data, binary);
}

function memberFor(edge: EdgeContext, feed: Feed, device_id: DeviceId, answer: HelloAnswer, caps: DeviceCaps): Member {
  return {
    feed,
    device_id,
    token_id: answer.token_id,
    group: feed.groups.find(({ cursors, delta, links }) => cursors === caps.cursors && delta === caps.delta && links === caps.media_url)!,
    streams: streamsOf(caps),
    head: answer.head,
    watermark: answer.watermark,
    told: toldBy(answer.frames),
    pinged: answer.watermark,
    pings_out: 0,
    pinged_at: 0,
    answers_pings: false,
    slow: false,
    unbroken: answer.watermark >= answer.head,
    frames_full_at: 0,
    sends_full_at: takeBucket(edge, answer.tenant_id, device_id),
    refused: 0,
    refused_since: 0,
    malformed: 0,
    malformed_since: 0,
    binary_told: false,
    uploads: undefined,
    pulls: undefined,
  };
}

const tokenIn = (hello: Uint8Array): string => (JSON.parse(Buffer.from(hello).toString()) as UpFrameOf<'hello'>).payload.token;

/** Registered, but nobody is there any more. */
function takeBack(edge: EdgeContext, connection: DeviceConnection, answer: HelloAnswer, hello: Uint8Array): void {
  if (answer.refused !== undefined) return;
  const { payload } = JSON.parse(Buffer.from(hello).toString()) as UpFrameOf<'hello'>;
  const { connection_id } = connection;
  edge.outbox
    .unregister(answer.tenant_id, { device_id: payload.device_id as DeviceId, edge_id: edge.edge_id, connection_id })
    .catch((error: unknown) => edge.log.debug('edge.unregister_failed', { error }));
}
