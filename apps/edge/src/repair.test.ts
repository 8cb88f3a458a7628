import type { ToEdge } from '@iris/bus';
import { describe, expect, test } from '@jest/globals';
import type { FakeSocket } from './testing/fake-sockets.js';
import { rig } from './testing/rig.js';
import { bytes, type EmitFrame, tenant } from './testing/scripted-session.js';

const note = (text: string, more: Partial<EmitFrame> = {}): EmitFrame => ({
  frame: { type: 'commentary', chat_id: 'c', payload: { text } },
  ...more,
});
const texts = (socket: FakeSocket) => socket.heard.filter((one) => one.type === 'commentary').map((one) => one.payload.text);
const update = (rev: number, after: number, more: Partial<Extract<ToEdge, { kind: 'ephemeral' }>> = {}): ToEdge => ({
  kind: 'ephemeral',
  tenant_id: tenant,
  after,
  key: 'm1',
  rev,
  type: 'message.update',
  message_id: 'm1',
  body: bytes({ type: 'message.update', payload: { message_id: 'm1', text: `rev ${rev}` } }),
  ...more,
});
const updates = (socket: FakeSocket) => socket.heard.filter((one) => one.type === 'message.update').map((one) => one.payload.text);

describe('durable frames', () => {
  test('OUT7 every device of the tenant gets them in one publish, without cursor', async () => {
    const { device, session, clock, sockets } = await rig();
    const [a, b, c] = [await device('d1'), await device('d2'), await device('d3')];
    const before = sockets.publishes;
    await session.emit(note('one'), note('two'));
    await clock.settle();
    for (const socket of [a, b, c]) expect(texts(socket)).toEqual(['one', 'two']);
    expect(sockets.publishes - before).toBe(2);
    expect(a.heard.at(-1)).not.toHaveProperty('cursor');
  });

  test('CAP2 devices with the cursors cap get the same frames with their cursor', async () => {
    const { device, session, clock, sockets } = await rig();
    const plain = await device('d1');
    const shown = await device('d2', { caps: { cursors: true } });
    const before = sockets.publishes;
    await session.emit(note('one'));
    await clock.settle();
    expect(plain.heard.at(-1)).not.toHaveProperty('cursor');
    expect(shown.heard.at(-1)).toMatchObject({ cursor: 1, payload: { text: 'one' } });
    expect(sockets.publishes - before).toBe(2);
  });

  test('ENV25 who asked gets the same frame with its id, in its place; it settles the request', async () => {
    const { device, session, clock, edge } = await rig();
    const [a, b] = [await device('d1'), await device('d2')];
    a.say({ id: 'x', type: 'message.send', payload: { text: 'hi' } });
    await clock.settle();
    const origin = { connection_id: session.requests.at(-1)!.connection_id, n: session.requests.at(-1)!.n };
    await session.emit(note('before'), note('hi', { origin }), note('after'));
    await clock.settle();
    expect(a.heard.slice(2).map((one) => [one.payload.text, one.id])).toEqual([
      ['before', undefined],
      ['hi', 'x'],
      ['after', undefined],
    ]);
    expect(b.heard.slice(2).map((one) => [one.payload.text, one.id])).toEqual([
      ['before', undefined],
      ['hi', undefined],
      ['after', undefined],
    ]);
    expect(edge.stats().in_flight).toBe(0);
    // The same said again by an answer changes nothing.
    session.answer(session.requests.at(-1)!, { cursor: 2 });
    await clock.settle();
    expect(a.heard).toHaveLength(5);
  });

  test('RCP4 a frame is kept from the one device it is not for, also when another one asked', async () => {
    const { device, session, clock } = await rig();
    const [a, b, c] = [await device('d1'), await device('d2'), await device('d3')];
    await session.emit(note('not for d2', { except_device_id: 'd2' as never }));
    a.say({ id: 1, type: 'message.send', payload: { text: 'hi' } });
    await clock.settle();
    const { connection_id, n } = session.requests.at(-1)!;
    await session.emit(note('asked', { except_device_id: 'd2' as never, origin: { connection_id, n } }));
    await clock.settle();
    expect(texts(a)).toEqual(['not for d2', 'asked']);
    expect(a.heard.at(-1)!.id).toBe(1);
    expect(texts(b)).toEqual([]);
    expect(texts(c)).toEqual(['not for d2', 'asked']);
  });

  test('isolation: a frame of another tenant reaches nobody', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    session.publish({
      kind: 'durable',
      tenant_id: 'other' as never,
      cursor: 1,
      previous: 0,
      type: 'commentary',
      push: false,
      body: bytes({ type: 'commentary', payload: {} }),
    });
    await clock.settle();
    expect(socket.heard).toHaveLength(2);
  });
});

describe('gaps', () => {
  test('OUT8 a lost frame is fetched before any later one goes out', async () => {
    const { device, session, clock, meter } = await rig();
    const socket = await device();
    await session.emit(note('1'), note('2', { lost: true }), note('3', { lost: true }), note('4'));
    await session.emit(note('5'));
    await clock.settle();
    expect(texts(socket)).toEqual(['1', '2', '3', '4', '5']);
    expect(meter.total('iris_edge_gaps_total', { found_by: 'frame' })).toBe(1);
    // And from there on it goes on live.
    await session.emit(note('6'));
    await clock.settle();
    expect(texts(socket).at(-1)).toBe('6');
    expect(meter.total('iris_edge_gaps_total')).toBe(1);
  });

  test('OUT8 a lost last frame is noticed by the head, within two seconds and a half', async () => {
    const { device, session, clock, meter } = await rig();
    const socket = await device();
    await session.emit(note('1', { lost: true }));
    await clock.advance(2_750);
    expect(texts(socket)).toEqual(['1']);
    expect(meter.total('iris_edge_gaps_total', { found_by: 'head' })).toBe(1);
  });

  test('ORD1 what comes twice, or late, is shown once', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    const record = (cursor: number): ToEdge => ({
      kind: 'durable',
      tenant_id: tenant,
      cursor,
      previous: cursor - 1,
      type: 'commentary',
      push: false,
      body: bytes({ type: 'commentary', payload: { text: `${cursor}` } }),
    });
    await session.emit(note('1', { lost: true }), note('2', { lost: true }), note('3', { lost: true }));
    session.publish(record(1), record(1));
    session.publish(record(3), record(2), record(3), record(1));
    await clock.settle();
    expect(texts(socket)).toEqual(['1', '2', '3']);
  });

  test('ENV25 the id goes with the frame also when the frame came by repair', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'message.send', payload: { text: 'a' } });
    await clock.settle();
    const { connection_id, n } = session.requests.at(-1)!;
    await session.emit(note('0', { lost: true }), note('a', { origin: { connection_id, n } }));
    await clock.settle();
    expect(socket.heard.slice(2).map((one) => [one.payload.text, one.id])).toEqual([
      ['0', undefined],
      ['a', 1],
    ]);
  });

  test('ENV24 an answer by cursor whose frame was lost: fetched, with the id', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'message.send', payload: { text: 'a' } });
    await clock.settle();
    const [cursor] = await session.emit(note('a', { lost: true }));
    session.answer(session.requests.at(-1)!, { cursor: cursor! });
    await clock.advance(750);
    expect(socket.heard.slice(2).map((one) => [one.payload.text, one.id])).toEqual([['a', 1]]);
  });

  test('ENV21 an answer by cursor whose frame went out already is given by a copy, once', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    await session.emit(note('a'));
    socket.say({ id: 1, type: 'message.send', payload: { text: 'a' } });
    socket.say({ id: 2, type: 'message.send', payload: { text: 'a' } });
    await clock.settle();
    session.answer(session.requests[1]!, { cursor: 1 });
    session.answer(session.requests[2]!, { cursor: 1, body: bytes({ type: 'commentary', payload: { text: 'given along' } }) });
    await clock.settle();
    expect(socket.heard.slice(3).map((one) => [one.id, one.payload.text])).toEqual(
      expect.arrayContaining([
        [1, 'a'],
        [2, 'given along'],
      ]),
    );
    expect(socket.heard).toHaveLength(5);
  });

  test('a frame whose origin was known too late answers by a copy', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'message.send', payload: { text: 'a' } });
    await clock.settle();
    const { connection_id, n } = session.requests.at(-1)!;
    await session.emit(note('a'));
    await clock.settle();
    session.publish({
      kind: 'durable',
      tenant_id: tenant,
      cursor: 1,
      previous: 0,
      type: 'commentary',
      push: false,
      origin: { connection_id, n },
      body: bytes({ type: 'commentary', payload: { text: 'a' } }),
    });
    await clock.settle();
    expect(socket.heard.slice(2).map((one) => one.id)).toEqual([undefined, 1]);
  });

  test('while the outbox is away frames that follow each other still go out, and a gap waits for it', async () => {
    const { device, session, clock, outbox } = await rig();
    const socket = await device();
    await session.emit(note('1'));
    await session.emit(note('2', { lost: true }));
    const record = (cursor: number, previous = cursor - 1): ToEdge => ({
      kind: 'durable',
      tenant_id: tenant,
      cursor,
      previous,
      type: 'commentary',
      push: false,
      body: bytes({ type: 'commentary', payload: { text: `${cursor}` } }),
    });
    await session.emit(note('3', { lost: true }));
    outbox.setConnected(false);
    session.publish(record(3));
    await clock.advance(5_000);
    expect(texts(socket)).toEqual(['1']);
    outbox.setConnected(true);
    await clock.advance(500);
    expect(texts(socket)).toEqual(['1', '2', '3']);
  });

  test('OUT13 the jump of a sequence that was seeded anew is no gap', async () => {
    const { device, session, clock, outbox, meter } = await rig();
    const socket = await device();
    await session.emit(note('1'));
    outbox.forgetEverything();
    await outbox.seed(tenant, 5_000, 1_000_000, 1);
    await session.emit(note('2'));
    await clock.settle();
    expect(texts(socket)).toEqual(['1', '2']);
    expect(meter.total('iris_edge_gaps_total')).toBe(0);
    expect(socket.closedWith).toBeUndefined();
  });

  test('CLS9 a gap whose frames are gone sends its live devices back with 1012', async () => {
    const { device, session, clock, outbox, edge } = await rig();
    const socket = await device();
    await session.emit(note('1', { lost: true }));
    outbox.forgetEverything();
    await outbox.seed(tenant, 5_000, 1_000_000, 1);
    await session.emit(note('2'));
    await clock.settle();
    expect(socket.closedWith?.code).toBe(1012);
    expect(edge.stats()).toMatchObject({ devices: 0, feeds: 0 });
  });

  test('CLS9 a gap over an outbox without a sequence is given up after two seconds, so that a hello can make it one', async () => {
    const { device, session, clock, outbox } = await rig();
    const socket = await device();
    await session.emit(note('1', { lost: true }));
    const record: ToEdge = {
      kind: 'durable',
      tenant_id: tenant,
      cursor: 2,
      previous: 1,
      type: 'commentary',
      push: false,
      body: bytes({ type: 'commentary', payload: { text: '2' } }),
    };
    outbox.forgetEverything();
    session.publish(record);
    await clock.advance(1_500);
    expect(socket.closedWith).toBeUndefined();
    await clock.advance(1_500);
    expect(socket.closedWith?.code).toBe(1012);
  });

  test('frames between a registration and its feed are not lost', async () => {
    const { connect, hello, session, clock, outbox } = await rig();
    session.deaf = true;
    const socket = connect();
    socket.say(hello());
    await clock.settle();
    const request = session.requests[0]!;
    const registered = await outbox.register(tenant, {
      device_id: 'd1' as never,
      edge_id: 'e1' as never,
      connection_id: request.connection_id,
      watermark: 0,
      new: true,
    });
    // Published before the edge has a feed to put it into.
    await session.emit(note('1'));
    await clock.settle();
    const answer = {
      tenant_id: tenant,
      token_id: 't',
      ack: {},
      head: 0,
      watermark: 0,
      frames: [],
      quotas: { frames_per_second: 10, frames_burst: 10, sends_per_second: 10, sends_burst: 10 },
    };
    session.answer(request, { body: Buffer.from(JSON.stringify(answer)) });
    await clock.advance(750);
    expect(registered).toMatchObject({ head: 0 });
    expect(texts(socket)).toEqual(['1']);
  });
});

describe('ephemeral frames', () => {
  test('ORD4 never backwards: what is not newer than what was shown is dropped', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    session.publish(update(1, 0), update(3, 0), update(2, 0), update(3, 0), update(4, 0));
    await clock.settle();
    expect(updates(socket)).toEqual(['rev 1', 'rev 3', 'rev 4']);
  });

  test('STR6 none after the message has stopped', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    session.publish(update(1, 0));
    await session.emit({ frame: { type: 'message.stop', payload: { message_id: 'm1', final_text: 'x' } }, message_id: 'm1' });
    session.publish(update(2, 1));
    await clock.settle();
    expect(updates(socket)).toEqual(['rev 1']);
  });

  test('ORD5 one that was made after frames that have not come waits for them, the newest of its key', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    await session.emit(note('1', { lost: true }));
    session.publish(update(1, 1), update(2, 1), {
      ...update(0, 1, { key: '', type: 'typing' }),
      body: bytes({ type: 'typing', payload: {} }),
    } as ToEdge);
    await clock.settle();
    expect(socket.heard).toHaveLength(2);
    await clock.advance(750);
    expect(socket.heard.slice(2).map((one) => one.payload.text ?? one.type)).toEqual(['1', 'rev 2', 'typing']);
  });

  test('RCP1 a frame for one connection reaches only that', async () => {
    const { device, session, clock } = await rig();
    const [a, b] = [await device('d1'), await device('d2')];
    const to = session.requests[0]!.connection_id;
    session.publish({ ...update(0, 0, { key: '', to }), body: bytes({ type: 'read.receipt', payload: { message_id: 'm' } }) } as ToEdge);
    await clock.settle();
    expect(a.heard.at(-1)!.type).toBe('read.receipt');
    expect(b.heard).toHaveLength(2);
  });
});

test('bytes that are no batch, and records that cannot be handled, end nothing', async () => {
  const { device, session, clock, hub } = await rig();
  const socket = await device();
  hub.connect('x').publish('iris.edge.e1', new Uint8Array([9, 9, 9]));
  hub.connect('x').publish('iris.control', new Uint8Array([1]));
  session.publish({ kind: 'answer', connection_id: session.requests[0]!.connection_id, n: 1, body: Buffer.from('{') });
  await session.emit(note('1'));
  await clock.settle();
  expect(texts(socket)).toEqual(['1']);
});
