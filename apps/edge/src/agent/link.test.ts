import { ownerOf } from '@iris/bus';
import { describe, expect, test } from '@jest/globals';
import { rig } from '../testing/rig.js';
import { agentToken, bodyOf, bytes, tenant } from '../testing/scripted-session.js';

const hello = { v: 1, id: 'h', type: 'hello', payload: { agent: 'demo', install_id: 'i1', boot_id: 'b1', last_seq: 0 } };

describe('the link', () => {
  test('LNK1 HEL3 another first frame is error auth and 4401; none within 10 s is 4408', async () => {
    const { connect, clock } = await rig();
    const other = connect('/agent');
    other.say({ id: 1, type: 'turn.accepted', seq: 1, turn_id: 't', payload: {} });
    expect(other.heard).toMatchObject([{ id: 1, type: 'error', payload: { code: 'auth' } }]);
    expect(other.closedWith?.code).toBe(4401);
    const silent = connect('/agent');
    await clock.advance(10_250);
    expect(silent.closedWith?.code).toBe(4408);
  });

  test('LNK1 the token of the upgrade, or of hello, reaches the session in the frame', async () => {
    const { connect, session, clock } = await rig();
    connect('/agent', 'a', agentToken).say(hello);
    connect('/agent', 'a').say({ ...hello, payload: { ...hello.payload, token: agentToken } });
    await clock.settle();
    expect(session.requests.map((one) => [one.type, one.peer, one.tenant_id, bodyOf(one).payload.token])).toEqual([
      ['hello', 'agent', tenant, agentToken],
      ['hello', 'agent', tenant, agentToken],
    ]);
  });

  test('LNK2 a bad token is error auth and 4401', async () => {
    const { connect, session, clock } = await rig();
    session.agentWith = { refused: { code: 'auth', message: 'token unknown' } };
    const socket = connect('/agent', 'a', 'nonsense');
    socket.say(hello);
    await clock.settle();
    expect(socket.heard).toMatchObject([{ id: 'h', type: 'error', payload: { code: 'auth' } }]);
    expect(socket.closedWith?.code).toBe(4401);
  });

  test('LNK14 LNK7 hello.ack and what is unacked come in order, then what the agent sent behind hello', async () => {
    const { connect, session, clock, types, edge } = await rig();
    session.agentWith = {
      frames: [JSON.stringify({ v: 1, type: 'hello.ack', payload: {} }), JSON.stringify({ v: 1, seq: 4, type: 'turn.start', payload: {} })],
      sent_seq: 4,
    };
    const socket = connect('/agent', 'a', agentToken);
    socket.say(hello);
    socket.say({ type: 'turn.accepted', seq: 1, turn_id: 'tn1', payload: {} });
    await clock.settle();
    expect(types(socket)).toEqual(['hello.ack', 'turn.start']);
    expect(socket.heard[0]!.id).toBe('h');
    expect(session.requests.at(-1)).toMatchObject({ type: 'turn.accepted', n: 2, agent_id: 'ag1', epoch: 1, peer: 'agent' });
    expect(edge.stats()).toMatchObject({ agents: 1, greeting: 0 });
  });

  test('LNK5 a durable frame is passed on only as the next one', async () => {
    const { agent, session, clock } = await rig();
    const socket = await agent();
    const connection_id = session.requests[0]!.connection_id;
    const frame = (seq: number) => ({ kind: 'agent' as const, connection_id, seq, body: bytes({ type: 'turn.start', seq, payload: {} }) });
    session.publish(frame(1), frame(1), frame(3), { kind: 'agent', connection_id, body: bytes({ type: 'ack', ack: 7, payload: {} }) });
    session.publish(frame(2), frame(3));
    await clock.settle();
    expect(socket.heard.slice(1).map((one) => one.seq ?? one.type)).toEqual([1, 'ack', 2, 3]);
  });

  test('KEE4 it is pinged, held is said every 3 s, and silence ends it', async () => {
    const { agent, session, clock, edge } = await rig();
    const socket = await agent();
    await clock.advance(10_000);
    expect(socket.pings.length).toBeGreaterThanOrEqual(2);
    expect(session.others.filter((one) => one.kind === 'held')).toMatchObject([
      { agent_id: 'ag1', epoch: 1 },
      { agent_id: 'ag1', epoch: 1 },
      { agent_id: 'ag1', epoch: 1 },
    ]);
    await clock.advance(15_250);
    expect(socket.terminated).toBe(true);
    await clock.settle();
    expect(session.others.at(-1)).toMatchObject({ kind: 'gone', peer: 'agent', agent_id: 'ag1', epoch: 1 });
    expect(edge.stats()).toMatchObject({ agents: 0, known: 0 });
  });

  test('an epoch that is over: the session closes the link', async () => {
    const { agent, session, clock } = await rig();
    const socket = await agent();
    session.publish({
      kind: 'close',
      connection_id: session.requests[0]!.connection_id,
      code: 4409,
      reason: 'replaced',
      body: new Uint8Array(),
    });
    await clock.settle();
    expect(socket.closedWith).toEqual({ code: 4409, reason: 'replaced' });
  });

  test('HEL15 a revoked token closes it with 4403', async () => {
    const { agent, clock, hub } = await rig();
    const socket = await agent();
    hub.connect('control').publish('iris.control', Buffer.from(JSON.stringify({ kind: 'revoked', tenant_id: tenant, token_id: 'tk2' })));
    await clock.settle();
    expect(socket.closedWith?.code).toBe(4403);
  });
});

describe('what an agent says', () => {
  test('LNK10 ephemerals become updates behind the requests before them; durable frames go in order', async () => {
    const { agent, session, clock } = await rig();
    const socket = await agent();
    const turn_id = 'tn1';
    socket.say({ type: 'turn.accepted', seq: 1, turn_id, payload: {} });
    socket.say({ type: 'message.start', seq: 2, turn_id, payload: { message_id: 'm', role: 'assistant' } });
    socket.say({ type: 'message.delta', turn_id, payload: { message_id: 'm', offset: 0, text: 'Hel' } });
    socket.say({ type: 'message.delta', turn_id, payload: { message_id: 'm', offset: 3, text: 'lo' } });
    socket.say({ type: 'tool.start', seq: 3, turn_id, payload: { index: 0, name: 'x' } });
    socket.say({ type: 'tool.progress', turn_id, payload: { index: 0, name: 'x', note: '…' } });
    socket.say({ type: 'message.delta', turn_id, payload: { message_id: 'm', offset: 5, text: '!' } });
    socket.say({ type: 'message.stop', seq: 4, turn_id, payload: { message_id: 'm', final_text: 'Hello!' } });
    await clock.advance(1_000);
    expect(session.requests.slice(1).map((one) => [one.n, one.type])).toEqual(
      expect.arrayContaining([
        [2, 'turn.accepted'],
        [3, 'message.start'],
        [4, 'tool.start'],
        [5, 'message.stop'],
      ]),
    );
    expect(session.updates.map((one) => [one.after_n, one.type, bodyOf(one).payload.text ?? bodyOf(one).payload.note])).toEqual([
      [3, 'message.update', 'Hel'],
      [3, 'message.update', 'Hello'],
      [4, 'tool.progress', '…'],
    ]);
    expect(session.updates[0]).toMatchObject({ agent_id: 'ag1', epoch: 1, tenant_id: tenant });
  });

  test('LNK6 acks that stand alone go on as one a turn, the newest', async () => {
    const { agent, session, clock } = await rig();
    session.handlers.set('ack', () => ({}));
    const socket = await agent();
    for (const ack of [3, 4, 5]) socket.say({ type: 'ack', ack });
    socket.say({ type: 'message.update', ack: 6, turn_id: 't', payload: { message_id: 'm', text: 'x' } });
    await clock.settle();
    expect(session.requests.slice(1).map((one) => [one.type, bodyOf(one).ack])).toEqual([['ack', 6]]);
    // One that says more than a number is a frame like any other.
    socket.say({ type: 'ack', id: 'r', ack: 7, payload: { removed: ['x'] } });
    await clock.settle();
    expect(session.requests.slice(2).map((one) => bodyOf(one).payload)).toContainEqual({ removed: ['x'] });
  });

  test('LNK11 an unknown type is ignored and still acked; a bad payload is said, and still acked', async () => {
    const { agent, session, clock } = await rig();
    const socket = await agent();
    socket.say({ type: 'later.invention', seq: 1, payload: { a: 1 } });
    socket.say({ type: 'later.invention', payload: {} });
    socket.say({ type: 'message.start', seq: 2, turn_id: 't', payload: {} });
    socket.say({ type: 'message.start', seq: 'x', turn_id: 't', payload: { message_id: 'm', role: 'assistant' } });
    await clock.settle();
    expect(session.requests.slice(1).map((one) => [one.type, bodyOf(one).seq])).toEqual([
      ['passed_over', 1],
      ['passed_over', 2],
    ]);
    expect(socket.heard.slice(1).map((one) => one.payload.code)).toEqual(['unsupported', 'unsupported']);
  });

  test('LNK45 a request is answered with its id, and only once', async () => {
    const { agent, session, clock } = await rig();
    session.handlers.set('history', () => ({ body: bytes({ type: 'history', payload: { messages: [] } }) }));
    const socket = await agent();
    socket.say({ id: 'r1', type: 'history', chat_id: 'c', payload: {} });
    socket.say({ id: 'r2', type: 'search', payload: { query: 'x' } });
    await clock.advance(10_500);
    expect(socket.heard.slice(1)).toMatchObject([
      { id: 'r1', type: 'history' },
      { id: 'r2', type: 'error', payload: { code: 'internal' } },
    ]);
  });

  test('KEE1 ping is answered here', async () => {
    const { agent, clock } = await rig();
    const socket = await agent();
    socket.say({ type: 'ping', payload: { ts: 5 } });
    expect(socket.heard.at(-1)).toEqual({ v: 1, type: 'pong', payload: { ts: 5, server_ts: clock.now() } });
  });

  test('CLS8 CLS1 LNK4 over 1 MiB closes with 1009; ten malformed frames with 4400', async () => {
    const { agent, session, clock } = await rig();
    const large = await agent();
    const frame = (size: number) =>
      `{"type":"message.start","seq":1,"turn_id":"t","payload":{"message_id":"m","role":"assistant","more":"${'x'.repeat(size)}"}}`;
    large.raw(frame(1024 * 1024 - 200));
    await clock.settle();
    expect(session.requests.at(-1)!.type).toBe('message.start');
    large.raw(frame(1024 * 1024));
    expect(large.closedWith?.code).toBe(1009);
    const wild = await agent();
    for (let i = 0; i < 10; i++) wild.raw(i % 2 ? '{' : new Uint8Array(4));
    expect(wild.closedWith?.code).toBe(4400);
  });
});

describe('when its session goes', () => {
  test('an instance that nobody serves any more: 1012 at once, and the link’s requests are asked by the next one', async () => {
    const { agent, session, another, clock, edge } = await rig();
    const socket = await agent();
    const next = another('s2');
    await clock.settle();
    session.die();
    socket.say({ type: 'turn.accepted', seq: 1, turn_id: 't', payload: {} });
    await clock.settle();
    expect(socket.closedWith?.code).toBe(1012);
    expect(next.requests).toEqual([]);
    expect(next.others).toMatchObject([{ kind: 'gone', peer: 'agent', agent_id: 'ag1' }]);
    expect(edge.stats()).toMatchObject({ agents: 0, in_flight: 0, known: 0 });
  });

  test('a tenant that moves to another instance: 1012 within seconds, and devices stay', async () => {
    const { agent, device, session, another, clock } = await rig();
    const [link, socket] = [await agent(), await device()];
    for (let i = 2; !link.closedWith && i < 40; i++) {
      const next = another(`s${i}`);
      await clock.settle();
      if (ownerOf(tenant, [session.session_id, next.session_id]) === session.session_id) next.leave();
      else await clock.advance(4_000);
    }
    expect(link.closedWith?.code).toBe(1012);
    expect(socket.closedWith).toBeUndefined();
  });

  test('ENV23 durable frames are never given up: without an answer the link is closed, to come back with them', async () => {
    const { agent, clock } = await rig();
    const socket = await agent();
    socket.say({ type: 'turn.accepted', seq: 1, turn_id: 't', payload: {} });
    await clock.advance(10_500);
    expect(socket.closedWith?.code).toBe(1012);
    expect(socket.heard.filter((one) => one.type === 'error')).toEqual([]);
  });

  test('OUT9 one that is far ahead of the session is closed with 1013, and loses nothing by it', async () => {
    const { connect, clock } = await rig({ agent_in_flight_bytes: 2_000 });
    const socket = connect('/agent', 'a', agentToken);
    socket.say(hello);
    await clock.settle();
    for (let seq = 1; seq <= 20 && !socket.closedWith; seq++)
      socket.say({ type: 'commentary', seq, payload: { message_id: `m${seq}`, text: 'x'.repeat(300) } });
    expect(socket.closedWith?.code).toBe(1013);
  });
});
