import type { ToEdge } from '@iris/bus';
import { describe, expect, test } from '@jest/globals';
import type { FakeSocket } from './testing/fake-sockets.js';
import { rig } from './testing/rig.js';
import { bytes, type EmitFrame, tenant } from './testing/scripted-session.js';

const big = 'x'.repeat(2_000);
const note = (n: number, more: Partial<EmitFrame> = {}): EmitFrame => ({
  frame: { type: 'commentary', chat_id: 'c', payload: { n, big } },
  ...more,
});
const numbers = (socket: FakeSocket) => socket.heard.filter((one) => one.type === 'commentary').map((one) => one.payload.n as number);
const upTo = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => i + from);

describe('slow readers', () => {
  test('OUT9 5,000 frames of 2 KB to a device that does not read: bounded memory, then all of them in order on the same socket', async () => {
    const { device, session, clock, edge } = await rig();
    const [slow, quick] = [await device('d1'), await device('d2')];
    slow.stall();
    for (let at = 0; at < 5_000; at += 100) {
      await session.emit(...Array.from({ length: 100 }, (_, i) => note(at + i + 1)));
      await clock.settle();
    }
    expect(slow.peakBuffered).toBeLessThan(512 * 1024);
    expect(numbers(quick)).toEqual(upTo(5_000));
    expect(edge.stats()).toMatchObject({ catching_up: 1, devices: 2 });
    slow.resume();
    await clock.settle();
    expect(numbers(slow)).toEqual(upTo(5_000));
    expect(edge.stats().catching_up).toBe(0);
    expect(slow.closedWith).toBeUndefined();
    await session.emit(note(5_001));
    await clock.settle();
    expect(numbers(slow).at(-1)).toBe(5_001);
    expect(numbers(slow)).toHaveLength(5_001);
  });

  test('OUT9 all of them in one bus message: the mark is passed by no more than one look', async () => {
    const { device, session, clock } = await rig();
    const slow = await device('d1');
    slow.stall();
    await session.emit(...upTo(2_000).map((n) => note(n)));
    await clock.settle();
    expect(slow.peakBuffered).toBeLessThan(400 * 1024);
    slow.resume();
    await clock.settle();
    expect(numbers(slow)).toEqual(upTo(2_000));
  });

  test('OUT9 reading a little at a time, while more comes, ends live with nothing lost or twice', async () => {
    const { device, session, clock, edge } = await rig();
    const slow = await device('d1');
    slow.stall();
    let n = 0;
    const emit = async (count: number) => {
      await session.emit(...Array.from({ length: count }, () => note(++n)));
      await clock.settle();
    };
    await emit(300);
    for (let i = 0; i < 20; i++) {
      slow.resume();
      slow.stall();
      await emit(17);
    }
    slow.resume();
    await clock.settle();
    expect(numbers(slow)).toEqual(upTo(n));
    expect(edge.stats().catching_up).toBe(0);
  });

  test('ENV25 the answer of a device that is catching up comes in its place, with the id', async () => {
    const { device, session, clock } = await rig();
    const slow = await device('d1');
    slow.say({ id: 'mine', type: 'message.send', payload: { text: 'x' } });
    await clock.settle();
    const { connection_id, n } = session.requests.at(-1)!;
    slow.stall();
    await session.emit(...upTo(300).map((i) => note(i)));
    await session.emit(note(301, { origin: { connection_id, n } }), note(302));
    await clock.settle();
    slow.resume();
    await clock.settle();
    expect(numbers(slow)).toEqual(upTo(302));
    expect(slow.heard.filter((one) => one.id === 'mine').map((one) => one.payload.n)).toEqual([301]);
  });

  test('ENV21 ENV25 ORD1 of a frame that it has not come to, and whose origin is known only now, it gets no copy before its place', async () => {
    const { device, session, clock } = await rig();
    const slow = await device('d1');
    slow.say({ id: 'mine', type: 'message.send', payload: { text: 'x' } });
    await clock.settle();
    const { connection_id, n } = session.requests.at(-1)!;
    slow.stall();
    await session.emit(...upTo(302).map((i) => note(i)));
    await clock.settle();
    session.publish({
      kind: 'durable',
      tenant_id: tenant,
      cursor: 301,
      previous: 300,
      origin: { connection_id, n },
      type: 'commentary',
      push: false,
      body: bytes(note(301).frame),
    });
    await clock.settle();
    slow.resume();
    await clock.settle();
    expect(numbers(slow)).toEqual(upTo(302));
    expect(slow.heard.filter((one) => one.id === 'mine').map((one) => one.payload.n)).toEqual([301]);
  });

  test('ENV21 an answer whose frame was deleted before it got to its device is not_found', async () => {
    const { device, session, clock, outbox } = await rig();
    const slow = await device('d1');
    slow.say({ id: 'mine', type: 'message.send', payload: { text: 'x' } });
    await clock.settle();
    const { connection_id, n } = session.requests.at(-1)!;
    slow.stall();
    await session.emit(...upTo(300).map((i) => note(i)));
    await session.emit(note(301, { origin: { connection_id, n }, message_id: 'm9' }), note(302));
    await outbox.forget(tenant, { message_ids: ['m9'] });
    slow.resume();
    await clock.settle();
    expect(numbers(slow)).toEqual([...upTo(300), 302]);
    expect(slow.heard.filter((one) => one.id === 'mine')).toMatchObject([{ type: 'error', payload: { code: 'not_found' } }]);
  });

  test('OUT3 of the updates that came meanwhile it gets the newest of each message, when it has caught up', async () => {
    const { device, session, clock } = await rig();
    const slow = await device('d1');
    const update = (key: string, rev: number, after: number): ToEdge => ({
      kind: 'ephemeral',
      tenant_id: tenant,
      after,
      key,
      rev,
      type: 'message.update',
      message_id: key,
      body: bytes({ type: 'message.update', payload: { message_id: key, rev } }),
    });
    slow.stall();
    await session.emit(...upTo(300).map((i) => note(i)));
    session.publish(update('m1', 1, 300), update('m2', 1, 300), update('m1', 2, 300), update('m1', 3, 300));
    await session.emit({ frame: { type: 'message.stop', payload: {} }, message_id: 'm2' });
    await clock.settle();
    slow.resume();
    await clock.settle();
    const updates = slow.heard.filter((one) => one.type === 'message.update');
    expect(updates.map((one) => [one.payload.message_id, one.payload.rev])).toEqual([['m1', 3]]);
    expect(slow.heard.at(-1)!.type).toBe('message.update');
  });

  test('RCP4 what is not for a device is not for it while it catches up either', async () => {
    const { device, session, clock } = await rig();
    const slow = await device('d1');
    slow.stall();
    await session.emit(...upTo(300).map((i) => note(i)), note(301, { except_device_id: 'd1' as never }), note(302));
    await clock.settle();
    slow.resume();
    await clock.settle();
    expect(numbers(slow)).toEqual([...upTo(300), 302]);
  });

  test('CLS9 one whose frames were trimmed before it could read them is sent back with 1012', async () => {
    const { device, session, clock, outbox } = await rig();
    const slow = await device('d1');
    slow.stall();
    await session.emit(...upTo(300).map((i) => note(i)));
    await clock.settle();
    await outbox.trim(tenant, { max_frames: 10, before_ms: 0 });
    slow.resume();
    await clock.settle();
    expect(slow.closedWith?.code).toBe(1012);
    const got = numbers(slow);
    expect(got).toEqual(upTo(got.length));
  });

  test('LIM7 who does not read gets no more to read: a question is rate_limited, a send is not', async () => {
    const { device, session, clock } = await rig();
    const slow = await device('d1');
    slow.stall();
    await session.emit(...upTo(300).map((i) => note(i)));
    await clock.settle();
    slow.say({ id: 1, type: 'history', chat_id: 'c', payload: {} });
    slow.say({ id: 2, type: 'message.send', payload: { text: 'x' } });
    await clock.settle();
    expect(session.requests.map((one) => one.type)).toEqual(['hello', 'message.send']);
    slow.resume();
    await clock.settle();
    expect(slow.heard.find((one) => one.id === 1)).toMatchObject({ payload: { code: 'rate_limited', retry_after_ms: 1_000 } });
  });

  test('OUT9 answers that nobody reads end the connection', async () => {
    const { device, session, clock } = await rig({ hard_mark_bytes: 50_000 });
    const slow = await device('d1');
    session.handlers.set('history', () => ({ body: bytes({ type: 'history', payload: { big: 'x'.repeat(20_000) } }) }));
    slow.stall();
    for (let id = 1; id <= 3; id++) slow.say({ id, type: 'history', chat_id: 'c', payload: {} });
    await clock.settle();
    expect(slow.terminated).toBe(true);
  });

  test('reading that fails is tried again', async () => {
    const { device, session, clock, outbox } = await rig();
    const slow = await device('d1');
    slow.stall();
    await session.emit(...upTo(300).map((i) => note(i)));
    await clock.settle();
    outbox.setConnected(false);
    slow.resume();
    await clock.advance(3_000);
    slow.pong();
    expect(numbers(slow).length).toBeLessThan(300);
    outbox.setConnected(true);
    await clock.advance(500);
    expect(numbers(slow)).toEqual(upTo(300));
  });
});

describe('devices that lag', () => {
  const update = (rev: number, size = 100): ToEdge => ({
    kind: 'ephemeral',
    tenant_id: tenant,
    after: 0,
    key: 'm1',
    rev,
    type: 'message.update',
    message_id: 'm1',
    body: bytes({ type: 'message.update', payload: { message_id: 'm1', rev, more: 'x'.repeat(size) } }),
  });
  const revs = (socket: FakeSocket) => socket.heard.filter((one) => one.type === 'message.update').map((one) => one.payload.rev);

  test('STR4 one whose buffer fills gets the newest update when it is empty again, and durable frames in their place', async () => {
    const { device, session, clock } = await rig();
    const [slow, quick] = [await device('d1'), await device('d2')];
    slow.stall();
    for (let rev = 1; rev <= 100; rev++) session.publish(update(rev, 4_000));
    await session.emit(note(1));
    session.publish(update(101), update(102));
    await clock.settle();
    expect(revs(quick)).toHaveLength(102);
    expect(slow.peakBuffered).toBeLessThan(48 * 1024);
    slow.resume();
    await clock.settle();
    expect(revs(slow).length).toBeLessThan(12);
    expect(revs(slow).at(-1)).toBe(102);
    expect(slow.heard.at(-1)!.payload.rev).toBe(102);
    expect(numbers(slow)).toEqual([1]);
  });

  test('STR4 one whose answers take long gets one update at a time, the newest; durable frames do not wait', async () => {
    const { device, session, clock, edge } = await rig();
    const slow = await device('d1');
    // Nothing piles up here: it is the network that holds things.
    await clock.advance(800);
    slow.echo();
    session.publish(update(1));
    await clock.settle();
    expect(slow.pings).toHaveLength(2);
    for (let rev = 2; rev <= 50; rev++) session.publish(update(rev));
    await session.emit(note(1));
    await clock.settle();
    expect(revs(slow)).toEqual([1]);
    expect(numbers(slow)).toEqual([1]);
    await clock.advance(800);
    slow.echo();
    expect(revs(slow)).toEqual([1, 50]);
    session.publish(update(51));
    await clock.settle();
    expect(revs(slow)).toEqual([1, 50]);
    slow.echo();
    expect(revs(slow)).toEqual([1, 50, 51]);
    // It has become quick: from here on it gets all of them.
    slow.echo();
    session.publish(update(52), update(53), update(54));
    await clock.settle();
    expect(revs(slow)).toEqual([1, 50, 51, 52, 53, 54]);
    expect(edge.stats().catching_up).toBe(0);
  });

  test('STR4 a ping without an answer for a second holds updates back; one that never answered a ping gets them', async () => {
    const { device, session, clock } = await rig();
    const [gone, mute] = [await device('d1'), await device('d2')];
    gone.echo();
    await clock.advance(5_250);
    await clock.advance(1_250);
    session.publish(update(1), update(2));
    await clock.settle();
    expect(revs(gone)).toEqual([]);
    expect(revs(mute)).toEqual([1, 2]);
    gone.echo();
    expect(revs(gone)).toEqual([2]);
  });
});

describe('joining', () => {
  test('HEL25 a device that registers behind the feed gets what is between, and only that', async () => {
    const { device, connect, hello, session, clock } = await rig();
    await device('d1');
    await session.emit(note(1));
    session.deaf = true;
    const late = connect();
    late.say(hello('d2'));
    await clock.settle();
    const request = session.requests.at(-1)!;
    await session.emit(note(2), note(3));
    await clock.settle();
    const answer = {
      tenant_id: tenant,
      token_id: 't',
      ack: {},
      head: 1,
      watermark: 1,
      frames: [],
      quotas: { frames_per_second: 10, frames_burst: 10, sends_per_second: 10, sends_burst: 10 },
    };
    session.answer(request, { body: Buffer.from(JSON.stringify(answer)) });
    await clock.settle();
    await session.emit(note(4));
    await clock.settle();
    expect(numbers(late)).toEqual([2, 3, 4]);
  });

  test('HEL25 a device that registers ahead of the feed gets nothing that is below its head', async () => {
    const { device, session, clock, edge } = await rig();
    const first = await device('d1');
    await session.emit(note(1, { lost: true }), note(2, { lost: true }));
    const late = await device('d2');
    expect(edge.stats().catching_up).toBe(1);
    await clock.advance(750);
    await session.emit(note(3));
    await clock.settle();
    expect(numbers(first)).toEqual([1, 2, 3]);
    expect(numbers(late)).toEqual([3]);
    expect(edge.stats().catching_up).toBe(0);
  });
});
