import { encode } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { rig } from './testing/rig.js';
import { bodyOf, bytes, quotas } from './testing/scripted-session.js';

const errorOf = (code: string, id?: number | string) => ({
  type: 'error',
  ...(id === undefined ? {} : { id }),
  payload: { code },
});

describe('the envelope', () => {
  test.each([
    ['text that is no JSON', 'nonsense'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a number', '7'],
    ['an object without type', '{}'],
    ['a type that is no string', '{"type":7}'],
  ])('ENV6 %s is error unsupported, and the connection stays', async (_, text) => {
    const { device } = await rig();
    const socket = await device();
    socket.raw(text);
    expect(socket.heard.at(-1)).toMatchObject(errorOf('unsupported'));
    expect(socket.closedWith).toBeUndefined();
  });

  test('ENV7 ten such frames within a minute close with 4400; nine, and nine a minute later, do not', async () => {
    const { device, clock } = await rig();
    const [one, two] = [await device('d1'), await device('d2')];
    for (let i = 0; i < 9; i++) two.raw('x');
    for (let i = 0; i < 10; i++) one.raw('x');
    expect(one.closedWith?.code).toBe(4400);
    // It answers pings, or it would be dropped.
    for (let i = 0; i < 61; i++) {
      await clock.advance(1_000);
      two.pong();
    }
    for (let i = 0; i < 9; i++) two.raw('x');
    expect(two.closedWith).toBeUndefined();
  });

  test('ENV8 text that is not UTF-8 closes with 1007', async () => {
    const { device } = await rig();
    const socket = await device();
    socket.raw(new Uint8Array([0x22, 0xc3, 0x28, 0x22]), false);
    expect(socket.closedWith?.code).toBe(1007);
  });

  test('LIM1 a frame of 256 KiB passes, a larger one closes with 1009', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    const frame = (size: number) => {
      const [before, after] = ['{"type":"message.send","id":1,"payload":{"text":"hi","more":"', '"}}'];
      return before + 'x'.repeat(size - before.length - after.length) + after;
    };
    socket.raw(frame(256 * 1024));
    await clock.settle();
    expect(session.requests.at(-1)).toMatchObject({ type: 'message.send' });
    expect(session.requests.at(-1)!.body).toHaveLength(256 * 1024);
    socket.raw(frame(256 * 1024 + 1));
    expect(socket.closedWith?.code).toBe(1009);
  });

  test('ENV9 a known type with a bad payload names the field, and nothing is asked', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    socket.say({ id: 4, type: 'message.send', payload: { text: 7 } });
    socket.say({ type: 'message.send', payload: { text: 7 } });
    await clock.settle();
    expect(socket.heard.at(-2)).toMatchObject({ ...errorOf('unsupported', 4), payload: { message: expect.stringMatching(/^text/) } });
    expect(socket.heard.at(-1)).not.toHaveProperty('id');
    expect(session.requests).toHaveLength(1);
  });

  test('ENV11 an unknown type is ignored without id, and refused with one', async () => {
    const { device } = await rig();
    const socket = await device();
    const before = socket.heard.length;
    socket.say({ type: 'constructor', payload: {} });
    expect(socket.heard).toHaveLength(before);
    socket.say({ id: 'x', type: '__proto__', payload: {} });
    expect(socket.heard.at(-1)).toMatchObject(errorOf('unsupported', 'x'));
  });

  test('ENV2 another major version is refused, and the connection stays', async () => {
    const { device } = await rig();
    const socket = await device();
    socket.say({ v: 2, id: 1, type: 'ping', payload: {} });
    expect(socket.heard.at(-1)).toMatchObject(errorOf('unsupported', 1));
    expect(socket.closedWith).toBeUndefined();
  });

  test('ENV16 the session gets the frame as it came, but for what no text may hold', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    const exact = '{"id":1, "type":"message.send","payload":{"text":"ü 👩‍👩‍👧 e\\u0301","__proto__":{"x":1}}}';
    socket.raw(exact);
    socket.raw('{"id":2,"type":"message.send","payload":{"text":"a\\u0000b\\ud800c"}}');
    await clock.settle();
    expect(Buffer.from(session.requests[1]!.body).toString()).toBe(exact);
    expect(bodyOf(session.requests[2]!).payload.text).toBe('a\ufffdb\ufffdc');
  });
});

describe('one answer each', () => {
  test('ENV21 each request gets its own answer, also two that carry the same id at once', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'history', chat_id: 'a', payload: {} });
    socket.say({ id: 1, type: 'search', payload: { query: 'x' } });
    await clock.settle();
    const [, history, search] = session.requests;
    session.answer(search!, { body: bytes({ type: 'search.results', payload: { hits: [] } }) });
    session.answer(history!, { body: bytes({ type: 'history', payload: { messages: [] } }) });
    session.answer(history!, { body: bytes({ type: 'history', payload: { messages: [] } }) });
    await clock.settle();
    expect(socket.heard.slice(2).map(({ type, id }) => [type, id])).toEqual([
      ['search.results', 1],
      ['history', 1],
    ]);
  });

  test('ENV20 a frame without id gets no response; what goes wrong with it has no id', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    session.handlers.set('history', () => ({ body: bytes({ type: 'history', payload: {} }) }));
    session.handlers.set('search', () => ({ body: bytes({ type: 'error', payload: { code: 'not_found', message: 'x' } }) }));
    socket.say({ type: 'history', chat_id: 'a', payload: {} });
    socket.say({ type: 'search', payload: { query: 'x' } });
    await clock.settle();
    expect(socket.heard.slice(2)).toEqual([{ v: 1, type: 'error', payload: { code: 'not_found', message: 'x' } }]);
  });

  test('ENV23 no answer within 10 s is error internal, once, whatever comes after', async () => {
    const { device, session, clock, edge } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'history', chat_id: 'a', payload: {} });
    for (let i = 0; i < 11; i++) {
      await clock.advance(1_000);
      socket.pong();
    }
    expect(socket.heard.slice(2)).toMatchObject([errorOf('internal', 1)]);
    session.answer(session.requests.at(-1)!, { body: bytes({ type: 'history', payload: {} }) });
    await clock.settle();
    expect(socket.heard).toHaveLength(3);
    expect(edge.stats().in_flight).toBe(0);
  });
});

describe('rates', () => {
  test('LIM6 message.send: over the burst error rate_limited with the time to wait, and no effect', async () => {
    const { device, session, clock } = await rig();
    session.helloWith = { quotas: { ...quotas, sends_per_second: 10, sends_burst: 3 } };
    session.handlers.set('message.send', () => ({ body: bytes({ type: 'ack', payload: { ok: true } }) }));
    const socket = await device();
    for (let id = 1; id <= 5; id++) socket.say({ id, type: 'message.send', payload: { text: 'x' } });
    await clock.settle();
    expect(session.requests.filter((one) => one.type === 'message.send')).toHaveLength(3);
    const limited = socket.heard.filter((one) => one.payload.code === 'rate_limited');
    expect(limited.map((one) => one.id)).toEqual([4, 5]);
    expect(limited[0]!.payload.retry_after_ms).toBe(100);
    await clock.advance(250);
    socket.say({ id: 6, type: 'message.send', payload: { text: 'x' } });
    await clock.settle();
    expect(session.requests.filter((one) => one.type === 'message.send')).toHaveLength(4);
  });

  test('LIM6 a new connection is no new bucket', async () => {
    const { device, session, clock } = await rig();
    session.helloWith = { quotas: { ...quotas, sends_per_second: 1, sends_burst: 2 } };
    const first = await device();
    first.say({ type: 'message.send', payload: { text: 'x' } });
    first.say({ type: 'message.send', payload: { text: 'x' } });
    first.drop();
    await clock.settle();
    const second = await device();
    second.say({ id: 1, type: 'message.send', payload: { text: 'x' } });
    expect(second.heard.at(-1)).toMatchObject(errorOf('rate_limited', 1));
  });

  test('LIM7 CLS6 frames: over the burst error rate_limited, and far over it close 4429', async () => {
    const { device, session } = await rig();
    session.helloWith = { quotas: { ...quotas, frames_per_second: 1, frames_burst: 10 } };
    const socket = await device();
    for (let id = 1; id <= 11; id++) socket.say({ id, type: 'ping', payload: {} });
    expect(socket.heard.slice(2).map((one) => one.type)).toEqual([...Array(10).fill('pong'), 'error']);
    expect(socket.heard.at(-1)).toMatchObject(errorOf('rate_limited', 11));
    for (let id = 12; id <= 150 && !socket.closedWith; id++) socket.say({ id, type: 'ping', payload: {} });
    expect(socket.closedWith?.code).toBe(4429);
  });

  test('LIM6 LIM7 what is over the rate is refused by what it says first, whatever follows: no such frame is decoded', async () => {
    const { device, session, clock } = await rig();
    session.helloWith = { quotas: { ...quotas, sends_per_second: 1, sends_burst: 1, frames_per_second: 1, frames_burst: 4 } };
    session.handlers.set('message.send', () => ({ body: bytes({ type: 'ack', payload: { ok: true } }) }));
    const socket = await device();
    socket.say({ id: 1, type: 'message.send', payload: { text: 'x' } });
    socket.raw('{"type":"message.send","id":"two","payload":{"text":');
    // What is no send has a rate of its own, and is looked at.
    socket.raw('{"type":"history","id":3,"payload":');
    socket.say({ id: 4, type: 'ping', payload: {} });
    socket.raw('{"v":1,"id":5,"type":"ping","payload":');
    socket.raw('{"payload":{},"id":6,"type":"ping"}');
    await clock.settle();
    const answers = socket.heard.slice(2).map(({ type, id, payload }) => [id, type === 'error' ? payload.code : type]);
    expect(answers).toEqual([
      ['two', 'rate_limited'],
      [undefined, 'unsupported'],
      [4, 'pong'],
      [5, 'rate_limited'],
      [6, 'rate_limited'],
      [1, 'ack'],
    ]);
    expect(session.requests.filter((one) => one.type === 'message.send')).toHaveLength(1);
    expect(socket.closedWith).toBeUndefined();
  });

  test('OUT9 unanswered requests of one device are bounded in bytes', async () => {
    const { device, session, clock } = await rig({ in_flight_bytes: 10_000 });
    const socket = await device();
    for (let id = 1; id <= 4; id++) socket.say({ id, type: 'message.send', payload: { text: 'x'.repeat(4_000) } });
    await clock.settle();
    expect(session.requests.filter((one) => one.type === 'message.send')).toHaveLength(3);
    expect(socket.heard.at(-1)).toMatchObject(errorOf('rate_limited', 4));
  });
});

describe('what the edge answers itself', () => {
  test('KEE1 KEE2 ping is answered with its ts, without and with an id, whatever the session does', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    session.die();
    socket.say({ type: 'ping', payload: { ts: 1724000000000 } });
    socket.say({ id: 3, type: 'ping', payload: {} });
    expect(socket.heard.slice(2)).toEqual([
      { v: 1, type: 'pong', payload: { ts: 1724000000000, server_ts: clock.now() } },
      { v: 1, id: 3, type: 'pong', payload: { server_ts: clock.now() } },
    ]);
  });

  test('UPL4 binary with no upload is error unsupported once', async () => {
    const { device } = await rig();
    const socket = await device();
    socket.raw(new Uint8Array(100));
    socket.raw(new Uint8Array(100));
    expect(socket.heard.slice(2)).toMatchObject([errorOf('unsupported')]);
  });

  test('UPL2 a session that refuses: start and pull are refused, bytes are swallowed, one answer each', async () => {
    const { device, session, clock } = await rig();
    const refused = { body: encode({ type: 'error', payload: { code: 'media_too_large', message: 'no room' } }) };
    for (const type of ['media.begin', 'media.find']) session.handlers.set(type, () => refused);
    const socket = await device();
    const start = { media_ref: 'mu_1', kind: 'image', mime: 'image/png', size: 10 };
    socket.say({ id: 1, type: 'media.upload.start', payload: start });
    socket.raw(new Uint8Array(10));
    socket.say({ id: 1, type: 'media.upload.end', payload: { media_ref: 'mu_1' } });
    socket.say({ id: 2, type: 'media.upload.start', payload: start });
    socket.say({ id: 3, type: 'media.upload.end', payload: { media_ref: 'mu_1' } });
    socket.say({ id: 4, type: 'media.pull', payload: { media_id: 'md_1' } });
    await clock.settle();
    expect(
      socket.heard
        .slice(2)
        .map((one) => [one.id, one.payload.message])
        .sort(),
    ).toEqual([1, 2, 3, 4].map((id) => [id, 'no room']));
  });
});
