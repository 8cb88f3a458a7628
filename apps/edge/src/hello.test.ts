import type { ToEdge } from '@iris/bus';
import { describe, expect, test } from '@jest/globals';
import { rig } from './testing/rig.js';
import { agentToken, bodyOf, bytes, deviceToken, tenant } from './testing/scripted-session.js';

describe('before hello', () => {
  test('HEL2 no hello within 10 s closes with 4408, and not a socket that has said it', async () => {
    const { clock, connect, device, edge } = await rig();
    const silent = connect();
    await device('d1');
    await clock.advance(9_700);
    expect(silent.closedWith).toBeUndefined();
    await clock.advance(600);
    expect(silent.closedWith?.code).toBe(4408);
    expect(edge.stats()).toMatchObject({ devices: 1, greeting: 0, known: 1 });
  });

  test.each([
    ['message.send', { id: 5, type: 'message.send', payload: { text: 'hi' } }, 5],
    ['ping', { id: 'p', type: 'ping', payload: {} }, 'p'],
    ['sync', { type: 'sync', payload: {} }, undefined],
    ['an unknown type', { id: 1, type: 'nope' }, 1],
    ['no object', [1], undefined],
  ])('HEL3 %s first is error auth with its id, close 4401, and has no effect', async (_, frame, id) => {
    const { connect, session, clock, edge } = await rig();
    const socket = connect();
    socket.say(frame);
    await clock.settle();
    expect(socket.heard).toHaveLength(1);
    expect(socket.heard[0]).toMatchObject({ type: 'error', payload: { code: 'auth' } });
    expect(socket.heard[0]!.id).toBe(id);
    expect(socket.closedWith?.code).toBe(4401);
    expect(session.requests).toEqual([]);
    expect(edge.stats().known).toBe(0);
  });

  test('HEL3 binary first is error auth and 4401', async () => {
    const { connect } = await rig();
    const socket = connect();
    socket.raw(new Uint8Array([1, 2, 3]));
    expect(socket.heard[0]).toMatchObject({ type: 'error', payload: { code: 'auth' } });
    expect(socket.closedWith?.code).toBe(4401);
  });

  test('LIM1 a first frame over 64 KiB closes with 1009', async () => {
    const { connect } = await rig();
    const socket = connect();
    socket.raw(`{"type":"hello","payload":{"token":"${'x'.repeat(64 * 1024)}"}}`);
    expect(socket.closedWith?.code).toBe(1009);
  });

  test('ENV8 a first frame that is not UTF-8 closes with 1007', async () => {
    const { connect } = await rig();
    const socket = connect();
    socket.raw(new Uint8Array([0x7b, 0xff, 0x7d]), false);
    expect(socket.closedWith?.code).toBe(1007);
  });

  test.each([
    ['v 2', { v: 2, id: 9, type: 'hello', payload: {} }],
    ['min_protocol 2', { id: 9, type: 'hello', payload: { token: deviceToken, device_id: 'd', caps: { min_protocol: 2 } } }],
    ['a bad device_name', { id: 9, type: 'hello', payload: { token: deviceToken, device_id: 'd', device_name: 'x'.repeat(200) } }],
  ])('HEL9 ENV2 %s is error unsupported and close 4400', async (_, frame) => {
    const { connect } = await rig();
    const socket = connect();
    socket.say(frame);
    expect(socket.heard[0]).toMatchObject({ id: 9, type: 'error', payload: { code: 'unsupported' } });
    expect(socket.closedWith?.code).toBe(4400);
  });

  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['too long', 'x'.repeat(129)],
  ])('HEL8 device_id %s is error auth and close 4401', async (_, device_id) => {
    const { connect } = await rig();
    const socket = connect();
    socket.say({ id: 1, type: 'hello', payload: { token: deviceToken, device_id } });
    expect(socket.heard[0]).toMatchObject({ id: 1, type: 'error', payload: { code: 'auth' } });
    expect(socket.closedWith?.code).toBe(4401);
  });

  test('HEL5 a malformed token takes the way of a wrong one: the session is asked, the answer is the same', async () => {
    const { connect, clock, session } = await rig();
    const answers = [];
    for (const token of ['garbage', `iris-device.${tenant}.wrong0000000000000`, 'iris-device.nobody.0123456789abcdef0']) {
      const socket = connect();
      socket.say({ id: 1, type: 'hello', payload: { token, device_id: 'd' } });
      await clock.settle();
      answers.push({ heard: socket.heard, closed: socket.closedWith?.code });
    }
    expect(session.requests).toHaveLength(3);
    expect(session.requests.map((one) => one.address)).toEqual(['10.0.0.1', '10.0.0.1', '10.0.0.1']);
    expect(answers[0]).toMatchObject({ closed: 4401, heard: [{ id: 1, type: 'error', payload: { code: 'auth' } }] });
    expect(answers[1]).toEqual(answers[0]);
  });

  test('LIM9 the 201st socket of an address before hello is closed with 1013, and leaves nothing', async () => {
    const { connect, edge, device } = await rig({ sockets_before_hello: 3 });
    const waiting = [connect(), connect(), connect()];
    expect(connect().closedWith?.code).toBe(1013);
    expect(connect('/ws', '10.9.9.9').closedWith).toBeUndefined();
    waiting[0]!.drop();
    await device();
    // One that has said hello does not count any more.
    expect(connect().closedWith).toBeUndefined();
    expect(connect().closedWith?.code).toBe(1013);
    expect(edge.stats()).toMatchObject({ greeting: 4, devices: 1, known: 5 });
  });

  test.each(['/ws', '/agent'] as const)(
    'LIM17 a herd that returns to %s is let in at a bounded rate, in order; who would wait too long is told when to come back, each at another time',
    async (path) => {
      const { clock, connect, hello, session, edge } = await rig({
        ...{ hellos_per_second: 4, hellos_burst: 4, agent_hellos_per_second: 4, agent_hellos_burst: 4 },
        sockets_before_hello: 1_000,
      });
      const herd = Array.from({ length: 120 }, (_, n) => {
        const socket = path === '/ws' ? connect(path, `10.0.${n}.1`) : connect(path, `10.0.${n}.1`, agentToken);
        socket.say(
          path === '/ws' ? hello(`d${n}`) : { type: 'hello', payload: { agent: 'demo', install_id: `i${n}`, boot_id: 'b', last_seq: 0 } },
        );
        return socket;
      });
      await clock.settle();
      const asked = () => session.requests.filter(({ type }) => type === 'hello').length;
      expect(asked()).toBe(4);
      // 15 s of those who wait: the others know at once.
      const refused = herd.slice(64);
      const waits = refused.map(({ heard, closedWith }) => {
        expect(heard[0]).toMatchObject({ type: 'error', payload: { code: 'rate_limited', retry_after_ms: expect.any(Number) } });
        expect(closedWith?.code).toBe(1013);
        return heard[0]!.payload.retry_after_ms as number;
      });
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(7_500);
      expect(Math.max(...waits)).toBeLessThanOrEqual(22_500);
      expect(new Set(waits).size).toBeGreaterThan(50);
      for (const gone of herd.slice(4, 8)) gone.drop();
      await clock.advance(5_000);
      expect(asked()).toBe(24);
      await clock.advance(20_000);
      expect(edge.stats()).toMatchObject({ greeting: 0, in_flight: 0 });
      expect(asked()).toBe(60);
      const greeted = ({ heard }: (typeof herd)[number]) => heard.some(({ type }) => type === 'hello.ack');
      expect(herd.slice(4, 8).some(greeted)).toBe(false);
      expect(herd.filter(greeted)).toHaveLength(60);
    },
  );

  test('LIM8 failed hellos are limited by address; whoever knows a good token is not locked out', async () => {
    const { connect, clock, device, hello, session } = await rig();
    const known = await device('d1');
    known.drop();
    await clock.settle();
    const wrong = () => {
      const socket = connect();
      socket.say({ id: 1, type: 'hello', payload: { token: `iris-device.${tenant}.wrong0000000000000`, device_id: 'd' } });
      return socket;
    };
    const sockets = Array.from({ length: 60 }, wrong);
    await clock.settle();
    expect(sockets.filter((one) => one.closedWith?.code === 4401)).toHaveLength(20);
    const limited = sockets.filter((one) => one.closedWith?.code === 4429);
    expect(limited).toHaveLength(40);
    expect(limited[0]!.heard[0]).toMatchObject({ id: 1, type: 'error', payload: { code: 'rate_limited' } });
    expect(limited[0]!.heard[0]!.payload.retry_after_ms).toBeGreaterThan(5_000);
    expect(session.requests).toHaveLength(21);
    const back = connect();
    back.say(hello('d1'));
    await clock.settle();
    expect(back.heard[0]?.type).toBe('hello.ack');
  });

  test('LIM8 a crowd of devices that comes back at once from one address gets in', async () => {
    const { connect, clock, hello, edge } = await rig({ sockets_before_hello: 1_000 });
    const sockets = Array.from({ length: 500 }, (_, i) => {
      const socket = connect();
      socket.say(hello(`d${i}`));
      return socket;
    });
    await clock.settle();
    expect(sockets.filter((one) => one.heard[0]?.type === 'hello.ack')).toHaveLength(500);
    expect(edge.stats()).toMatchObject({ devices: 500, greeting: 0 });
  });

  test('ENV23 a hello that no session answers is error internal, and the socket is told that there is no room', async () => {
    const { connect, clock, session, hello, edge } = await rig();
    session.deaf = true;
    const socket = connect();
    socket.say(hello());
    await clock.advance(9_000);
    expect(socket.closedWith).toBeUndefined();
    await clock.advance(1_500);
    expect(socket.heard).toMatchObject([{ id: 'h', type: 'error', payload: { code: 'internal' } }]);
    expect(socket.closedWith?.code).toBe(1013);
    expect(edge.stats()).toMatchObject({ known: 0, greeting: 0, in_flight: 0 });
  });
});

describe('hello.ack', () => {
  test('HEL16 HEL21 HEL22 ack with the watermark, status online, then what is going on', async () => {
    const { device, session, types } = await rig();
    session.helloWith = {
      frames: [
        JSON.stringify({ v: 1, type: 'agent.busy', chat_id: 'c', payload: { reason: 'tool' } }),
        JSON.stringify({ v: 1, type: 'message.start', chat_id: 'c', payload: { message_id: 'm1', role: 'assistant' } }),
      ],
    };
    await session.emit({ frame: { type: 'commentary', payload: { message_id: 'm0', text: 'x' } } });
    const socket = await device();
    expect(types(socket)).toEqual(['hello.ack', 'status', 'agent.busy', 'message.start']);
    expect(socket.heard[0]).toMatchObject({ id: 'h', payload: { sync_cursor: 1, last_pushed_cursor: 0 } });
    expect(socket.heard[1]).toMatchObject({ payload: { state: 'online' } });
  });

  test('HEL22 MSG10 what the bus brings late of a text is not shown once more of it was told: a text does not become shorter', async () => {
    const { device, session, clock } = await rig();
    const update = (rev: number, text: string): ToEdge => ({
      kind: 'ephemeral',
      tenant_id: tenant,
      after: 0,
      key: 'text:m1',
      rev,
      type: 'message.update',
      message_id: 'm1',
      body: bytes({ type: 'message.update', chat_id: 'c', payload: { message_id: 'm1', text } }),
    });
    const early = await device('d1');
    session.helloWith = {
      frames: [
        JSON.stringify({ v: 1, type: 'message.start', chat_id: 'c', payload: { message_id: 'm1', role: 'assistant' } }),
        JSON.stringify({ v: 1, type: 'message.update', chat_id: 'c', payload: { message_id: 'm1', text: 'one two three' } }),
      ],
      revs: [['text:m1', 30]],
    };
    const late = await device('d2');
    const texts = (socket: typeof late) => socket.heard.filter(({ type }) => type === 'message.update').map(({ payload }) => payload.text);
    session.publish(update(10, 'one'));
    await clock.settle();
    // The newest is everybody's: who was here before has not been told.
    session.publish(update(30, 'one two three'), update(20, 'one two'));
    await clock.advance(1_000);
    session.publish(update(40, 'one two three four'));
    await clock.advance(1_000);
    expect(texts(early)).toEqual(['one two three', 'one two three four']);
    expect(texts(late)).toEqual(['one two three', 'one two three', 'one two three four']);
  });

  test('ORD2 what is sent behind hello waits for the ack and is then done in order', async () => {
    const { connect, hello, session, clock, types } = await rig();
    session.handlers.set('history', () => ({ body: bytes({ type: 'history', payload: { messages: [] } }) }));
    const socket = connect();
    socket.say(hello());
    socket.say({ id: 1, type: 'ping', payload: { ts: 7 } });
    socket.say({ id: 2, type: 'history', chat_id: 'c', payload: {} });
    socket.say({ id: 3, type: 'message.send', payload: { text: 'hi' } });
    expect(socket.heard).toEqual([]);
    await clock.settle();
    expect(types(socket)).toEqual(['hello.ack', 'status', 'pong', 'history']);
    expect(session.requests.map((one) => [one.n, one.type])).toEqual([
      [1, 'hello'],
      [2, 'history'],
      [3, 'message.send'],
    ]);
    expect(session.requests[2]).toMatchObject({ device_id: 'd1', tenant_id: tenant, peer: 'device' });
    expect(bodyOf(session.requests[2]!)).toMatchObject({ id: 3, payload: { text: 'hi' } });
  });

  test('more behind hello than a device may send closes with 4429', async () => {
    const { connect, hello, session, clock } = await rig({ waiting_frames: 5 });
    session.deaf = true;
    const socket = connect();
    socket.say(hello());
    await clock.settle();
    for (let i = 0; i < 5; i++) socket.say({ type: 'ping', payload: {} });
    expect(socket.closedWith).toBeUndefined();
    socket.say({ type: 'ping', payload: {} });
    expect(socket.closedWith?.code).toBe(4429);
  });

  test('HEL11 a second hello is error unsupported, and the connection stays', async () => {
    const { device, hello } = await rig();
    const socket = await device();
    socket.say({ ...hello(), id: 2 });
    expect(socket.heard.at(-1)).toMatchObject({ id: 2, type: 'error', payload: { code: 'unsupported' } });
    expect(socket.closedWith).toBeUndefined();
  });

  test('HEL12 the same device again: the newer wins, the older gets 4409', async () => {
    const { device, clock, edge } = await rig();
    const older = await device('d1');
    const newer = await device('d1');
    await clock.settle();
    expect(older.closedWith?.code).toBe(4409);
    expect(newer.closedWith).toBeUndefined();
    expect(edge.stats().devices).toBe(1);
  });

  test('HEL12 a replacement that nobody told this edge of is noticed within 5 s', async () => {
    const { device, clock, outbox, edge } = await rig();
    const older = await device('d1');
    await outbox.register(tenant, {
      device_id: 'd1' as never,
      edge_id: 'e2' as never,
      connection_id: 'x9' as never,
      watermark: 0,
      new: false,
    });
    await clock.advance(5_300);
    expect(older.closedWith?.code).toBe(4409);
    expect(edge.stats()).toMatchObject({ devices: 0, feeds: 0, known: 0 });
    // Its goodbye must not take the newer one out.
    expect(await outbox.devices(tenant)).toMatchObject([{ device_id: 'd1', connection_id: 'x9' }]);
  });

  test('HEL15 a revocation closes the devices that it means with 4403', async () => {
    const { device, session, clock, hub } = await rig();
    const kept = await device('d1');
    session.helloWith = { token_id: 'tk9' };
    const gone = await device('d2');
    hub.connect('control').publish('iris.control', Buffer.from(JSON.stringify({ kind: 'revoked', tenant_id: tenant, token_id: 'tk9' })));
    await clock.settle();
    expect(gone.closedWith?.code).toBe(4403);
    expect(kept.closedWith).toBeUndefined();
  });

  test('HEL15 a hello that was being answered during a revocation is closed as well, and not left registered', async () => {
    const { connect, hello, session, clock, hub, outbox } = await rig();
    session.deaf = true;
    const socket = connect();
    socket.say(hello('d1'));
    await clock.settle();
    hub.connect('control').publish('iris.control', Buffer.from(JSON.stringify({ kind: 'revoked', tenant_id: tenant, device_id: 'd1' })));
    await clock.settle();
    session.deaf = false;
    // Asked again, it is answered from what was true before.
    await clock.advance(2_500);
    expect(socket.closedWith?.code).toBe(4403);
    await clock.settle();
    expect((await outbox.devices(tenant)).filter((one) => one.connection_id !== undefined)).toEqual([]);
  });

  test('a device that leaves before its hello is answered, or even asked, is not left registered', async () => {
    const { connect, hello, session, clock, outbox, edge, device } = await rig();
    const early = connect();
    early.say(hello('d1'));
    early.drop();
    await clock.settle();
    expect([session.requests, session.others, edge.stats().known]).toEqual([[], [], 0]);
    // Its token is known from now on.
    await device('d0');
    const socket = connect();
    socket.say(hello('d1'));
    socket.drop();
    await clock.settle();
    await clock.settle();
    const held = (await outbox.devices(tenant)).filter((one) => one.connection_id !== undefined);
    expect(held.map(({ device_id }) => device_id)).toEqual(['d0']);
    expect(session.others).toMatchObject([{ kind: 'gone', peer: 'device' }]);
    expect(edge.stats().known).toBe(1);
  });
});
