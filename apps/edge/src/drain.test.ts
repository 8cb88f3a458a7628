import { describe, expect, test } from '@jest/globals';
import { rig } from './testing/rig.js';
import { bytes } from './testing/scripted-session.js';

describe('drain', () => {
  test('HEL28 every socket is closed with 1012, spread over the time, without a status', async () => {
    const { device, clock, edge, hub, types } = await rig();
    hub.connect('another edge').serve('iris.edges', () => new Uint8Array());
    const sockets = [];
    for (let i = 0; i < 40; i++) sockets.push(await device(`d${i}`));
    const done = edge.drain({ within_ms: 10_000 });
    expect(edge.ready()).toBe(false);
    const left: number[] = [];
    for (let i = 0; i < 10; i++) {
      await clock.advance(1_000);
      left.push(sockets.filter((one) => !one.closedWith).length);
    }
    await done;
    expect(left[1]).toBeGreaterThan(15);
    expect(left[4]).toBeGreaterThan(2);
    expect(left.at(-1)).toBe(0);
    expect(new Set(sockets.map((one) => one.closedWith!.code))).toEqual(new Set([1012]));
    expect(sockets.flatMap((one) => types(one)).filter((type) => type === 'status')).toHaveLength(40);
  });

  test('HEL27 when the last edge goes, devices are told before the first is closed', async () => {
    const { device, clock, edge } = await rig();
    const [plain, shown] = [await device('d1'), await device('d2', { caps: { cursors: true } })];
    const done = edge.drain({ within_ms: 1_000 });
    await clock.settle();
    expect(plain.heard.at(-1)).toMatchObject({ type: 'status', payload: { state: 'restarting' } });
    await clock.advance(1_500);
    await done;
    for (const socket of [plain, shown]) {
      expect(socket.heard.at(-1)).toMatchObject({ type: 'status', payload: { state: 'restarting' } });
      expect(socket.closedWith?.code).toBe(1012);
    }
  });

  test('HEL27 while the broker cannot be asked who else is there, devices are told nothing', async () => {
    const { device, clock, edge, edgeBus, types } = await rig();
    const socket = await device('d1');
    edgeBus.setConnected(false);
    const done = edge.drain({ within_ms: 2_000 });
    await clock.advance(4_000);
    await done;
    expect(types(socket).filter((type) => type === 'status')).toHaveLength(1);
    expect(socket.closedWith?.code).toBe(1012);
  });

  test('HEL27 an operator’s word tells devices, and closes nobody', async () => {
    const { device, clock, hub } = await rig();
    const socket = await device();
    hub.connect('control').publish('iris.control', Buffer.from('{"kind":"restarting"}'));
    await clock.settle();
    expect(socket.heard.at(-1)).toMatchObject({ payload: { state: 'restarting' } });
    expect(socket.closedWith).toBeUndefined();
  });

  test('LNK37 agents are told first', async () => {
    const { agent, clock, edge } = await rig();
    const link = await agent();
    const done = edge.drain({ within_ms: 2_000 });
    await clock.settle();
    expect(link.heard.at(-1)).toEqual({ v: 1, type: 'drain', payload: { deadline_ms: 2_000 } });
    await clock.advance(2_500);
    await done;
    expect(link.closedWith?.code).toBe(1012);
  });

  test('C53 one that is owed an answer gets it before it is closed', async () => {
    const { device, session, clock, edge } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'history', chat_id: 'c', payload: {} });
    await clock.settle();
    const done = edge.drain({ within_ms: 5_000 });
    // Past every moment that chance could have given it.
    await clock.advance(4_200);
    expect(socket.closedWith).toBeUndefined();
    session.answer(session.requests.at(-1)!, { body: bytes({ type: 'history', payload: {} }) });
    await clock.advance(300);
    await done;
    expect(socket.heard.at(-1)!.type).toBe('history');
    expect(socket.closedWith?.code).toBe(1012);
  });

  test('C55 one that is never answered does not hold up the end', async () => {
    const { device, clock, edge } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'history', chat_id: 'c', payload: {} });
    const done = edge.drain({ within_ms: 3_000 });
    await clock.advance(3_200);
    await done;
    expect(socket.closedWith?.code).toBe(1012);
  });

  test('a socket that comes while it drains is sent elsewhere', async () => {
    const { connect, clock, edge, hello } = await rig();
    const before = connect();
    void edge.drain({ within_ms: 2_000 });
    if (!before.closedWith) before.say(hello());
    expect(connect().closedWith?.code).toBe(1012);
    await clock.advance(2_500);
    expect(before.closedWith?.code).toBe(1012);
    expect(edge.stats()).toMatchObject({ devices: 0, greeting: 0 });
  });

  test('stop leaves no timer and no subscription, and nothing registered', async () => {
    const { device, agent, clock, edge, outbox, session } = await rig();
    await device('d1');
    await agent();
    await edge.stop();
    await clock.settle();
    expect((await outbox.devices('tn1' as never)).filter((one) => one.connection_id)).toEqual([]);
    expect(edge.stats()).toEqual({ devices: 0, agents: 0, greeting: 0, catching_up: 0, feeds: 0, in_flight: 0, known: 0 });
    session.leave();
    await clock.advance(60_000);
    expect(clock.timers).toBe(0);
  });
});
