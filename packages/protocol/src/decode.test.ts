import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Decoded, decode, decodeAgent, isRequestId } from './decode.js';
import { frameTypes, rowOf } from './frame-table.js';
import { limits } from './limits.js';

const kindOf = (value: unknown) => decode(typeof value === 'string' ? value : JSON.stringify(value)).kind;
const send = (payload: unknown, more: Record<string, unknown> = {}) =>
  JSON.stringify({ v: 1, id: 1, type: 'message.send', payload, ...more });
const messageOf = (decoded: Decoded<unknown, unknown>) => (decoded.kind === 'frame' ? undefined : decoded.message);
function frameOf<F>(decoded: Decoded<F, unknown>): F {
  if (decoded.kind !== 'frame') throw new Error(`${decoded.kind}: ${decoded.message}`);
  return decoded.frame;
}

describe('ENV: what is a frame', () => {
  test.each(['', 'x', '{', '[]', 'null', '7', '"ping"', '{}', '{"type":7}', '{"type":null}', '{"payload":{}}'])(
    'ENV6: %s is none',
    (source) => {
      expect(decode(source).kind).toBe('malformed');
    },
  );

  test('ENV6: an id that stands in a frame without a type comes back', () => {
    expect(decode('{"id":5}')).toEqual({ kind: 'malformed', id: 5, message: 'type: missing' });
  });

  test('ENV11, LNK11: types of the other sides, of other versions, and names that objects inherit are unknown', () => {
    for (const type of ['message', 'hello.ack', 'turn.end', 'constructor', '__proto__', 'toString', 'message.sent', ''])
      expect(decode(JSON.stringify({ type, id: 'a' }))).toMatchObject({ kind: 'unknown', id: 'a', type });
    expect(decodeAgent('{"type":"message.send","seq":4}')).toMatchObject({ kind: 'unknown', seq: 4 });
  });

  test.each([0, 2, '1', 1.5, null, true])('ENV2: v %p is another version', (v) => {
    expect(decode(JSON.stringify({ v, id: 3, type: 'ping' }))).toMatchObject({ kind: 'version', id: 3 });
  });
  test('ENV2: v absent or 1 is this one', () => {
    expect(kindOf({ type: 'ping' })).toBe('frame');
    expect(kindOf({ v: 1, type: 'ping', payload: {} })).toBe('frame');
  });

  test('ENV1, ENV10: a payload is an object; absent is an empty one', () => {
    for (const payload of [null, [], 'x', 5]) expect(decode(JSON.stringify({ type: 'ping', payload }))).toMatchObject({ kind: 'invalid' });
    expect(frameOf(decode('{"type":"ping"}'))).toEqual({ type: 'ping', payload: {} });
  });

  test('ENV12: unknown fields are ignored, in the envelope and the payload, also when they are named like others', () => {
    const frame = frameOf(decode('{"type":"ping","extra":{"a":[1]},"payload":{"ts":1,"token":7,"chat_id":9,"__proto__":{"x":1}}}'));
    expect(frame).toMatchObject({ type: 'ping', payload: { ts: 1 } });
    expect(frame).not.toHaveProperty('extra');
  });
});

describe('ENV: ids', () => {
  test.each([0, -1, 2 ** 53 - 1, 'a', 'x'.repeat(64), '😀'.repeat(64), '\u0000', '__proto__'])('ENV3: %p is echoed exactly', (id) => {
    expect(frameOf(decode(JSON.stringify({ type: 'ping', id })))).toMatchObject({ id });
  });
  test('ENV3, ENV16: an id is echoed exactly also when the rest is cleaned', () => {
    const frame = frameOf(decode('{"type":"message.send","id":"\\u0000\\ud800","payload":{"text":"a\\u0000b"}}'));
    expect(frame).toMatchObject({ id: '\u0000\ud800', payload: { text: 'a\ufffdb' } });
  });
  test.each([1.5, 2 ** 53, '', 'x'.repeat(65), '😀'.repeat(65), true, {}, [1]])('ENV4: %p is refused without an id', (id) => {
    const decoded = decode(JSON.stringify({ type: 'ping', id }));
    expect(decoded).toMatchObject({ kind: 'invalid', message: expect.stringMatching(/^id:/) });
    expect(decoded).not.toHaveProperty('id');
    expect(isRequestId(id)).toBe(false);
  });
  test('ENV5: id null is no id', () => {
    expect(frameOf(decode('{"type":"ping","id":null}'))).not.toHaveProperty('id');
  });
});

describe('ENV: the lane', () => {
  test('ENV13: from the envelope or the payload; the envelope wins, field by field', () => {
    const lane = (more: object, payload: object) => {
      const { chat_id, thread_id } = frameOf(decode(send({ text: 'x', ...payload }, more as Record<string, unknown>)));
      return [chat_id, thread_id];
    };
    expect(lane({}, {})).toEqual([undefined, undefined]);
    expect(lane({ chat_id: 'a', thread_id: 't' }, { chat_id: 'b', thread_id: 'u' })).toEqual(['a', 't']);
    expect(lane({}, { chat_id: 'b', thread_id: 'u' })).toEqual(['b', 'u']);
    expect(lane({ chat_id: 'a' }, { thread_id: 'u' })).toEqual(['a', 'u']);
    expect(lane({ chat_id: 'a', thread_id: null }, { thread_id: 'u' })).toEqual(['a', null]);
    expect(lane({ chat_id: null }, { chat_id: 'b' })).toEqual(['b', undefined]);
  });

  test('ENV9, ENV15: ids of a wrong shape are named; strange ones are strings like others', () => {
    for (const chat_id of [5, '', {}, 'x'.repeat(129)]) expect(messageOf(decode(send({ text: 'x' }, { chat_id })))).toMatch(/^chat_id:/);
    expect(messageOf(decode(send({ text: 'x', chat_id: 5 })))).toMatch(/^chat_id:/);
    expect(messageOf(decode(send({ text: 'x' }, { thread_id: 5 })))).toMatch(/^thread_id:/);
    expect(frameOf(decode(send({ text: 'x' }, { chat_id: '__proto__', thread_id: 'toString' })))).toMatchObject({ chat_id: '__proto__' });
  });

  test('ENV14, SEA2: what is about a lane needs a chat_id, but for message.send and search', () => {
    for (const type of frameTypes) {
      if (rowOf(type)?.up?.scope !== 'lane') continue;
      expect(decode(JSON.stringify({ type, id: 1, payload: {} }))).toMatchObject({ kind: 'invalid', message: 'chat_id: missing' });
    }
    expect(kindOf(send({ text: 'x' }))).toBe('frame');
    expect(kindOf({ type: 'search', payload: { query: 'x' } })).toBe('frame');
    expect(messageOf(decode('{"type":"search","payload":{"query":"x","scope":"chat"}}'))).toBe('chat_id: missing');
    expect(kindOf({ type: 'search', payload: { query: 'x', scope: 'chat', chat_id: 'a' } })).toBe('frame');
    expect(frameOf(decode('{"type":"read.receipt","payload":{"chat_id":"a","message_id":"m"}}'))).toMatchObject({ chat_id: 'a' });
  });
});

describe('LIM: sizes', () => {
  test('LIM2, STE4: message text is counted in bytes of UTF-8', () => {
    const fits = ['x'.repeat(limits.text_bytes), 'é'.repeat(limits.text_bytes / 2), '😀'.repeat(limits.text_bytes / 4)];
    for (const text of fits) {
      expect(kindOf(send({ text }))).toBe('frame');
      expect(messageOf(decode(send({ text: `${text}x` })))).toMatch(/^text: .*65536 bytes/);
      expect(messageOf(decode(JSON.stringify({ type: 'agent.steer', chat_id: 'a', payload: { text: `${text}x` } })))).toMatch(/^text:/);
    }
    for (const text of ['', ' \n']) {
      expect(messageOf(decode(JSON.stringify({ type: 'agent.steer', chat_id: 'a', payload: { text } })))).toMatch(
        /^text: must not be blank/,
      );
    }
  });

  test('LIM3: 32 levels are fine, 33 are not, a bomb is refused without being parsed', () => {
    const nested = (levels: number) =>
      `{"type":"message.send","id":9,"payload":{"text":"x","more":${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}}}`;
    expect(kindOf(nested(32))).toBe('frame');
    expect(decode(nested(33))).toMatchObject({ kind: 'invalid', id: 9, message: 'more than 32 levels deep' });
    expect(decode(nested(900))).toMatchObject({ kind: 'invalid', id: 9 });
    expect(decode(nested(100_000))).toEqual({ kind: 'malformed', message: 'more than 32 levels deep' });
    expect(decode('['.repeat(200_000)).kind).toBe('malformed');
    expect(kindOf(send({ text: '[{'.repeat(20_000) }))).toBe('frame');
    expect(kindOf(send({ text: '\\"[{'.repeat(10_000) }))).toBe('frame');
  });

  test('LIM4, MSG4, PIC15: pickers, refs and names have theirs', () => {
    const select = (value: unknown) => decode(JSON.stringify({ type: 'picker.select', payload: { picker_id: 'p', value } }));
    expect(select('x'.repeat(4096)).kind).toBe('frame');
    expect(messageOf(select('x'.repeat(4097)))).toMatch(/^value: .*4096 bytes/);
    expect(messageOf(select(['é'.repeat(2000), 'é'.repeat(200)]))).toMatch(/^value:/);
    expect(messageOf(decode(send({ text: 'x', client_ref: 'r'.repeat(65) })))).toMatch(/^client_ref: .*64 characters/);
    expect(messageOf(decode(send({ text: 'x', media_refs: Array(100_000).fill(1) })))).toMatch(/^media_refs: .*32 items/);
    expect(messageOf(decode(JSON.stringify({ type: 'channel.create', payload: { name: 'n'.repeat(36_213) } })))).toMatch(/^name:/);
  });
});

describe('payloads', () => {
  test.each([
    [{}, /^text:/],
    [{ text: '' }, /^text:/],
    [{ text: ' \n\t\u00a0' }, /^text:/],
    [{ text: '', media_refs: [] }, /^text:/],
    [{ text: 5 }, /^text: must be a string/],
    [{ text: 'x', reply_to: 5 }, /^reply_to: must be string or null/],
    [{ text: 'x', media_refs: ['a', ''] }, /^media_refs\[1\]: must not be empty/],
    [{ text: 'x', auto_thread: 'yes' }, /^auto_thread:/],
  ])('ENV9, MSG2: message.send %j is refused by field', (payload, message) => {
    expect(decode(send(payload))).toMatchObject({ kind: 'invalid', id: 1, type: 'message.send', code: 'unsupported' });
    expect(messageOf(decode(send(payload)))).toMatch(message);
  });
  test('MSG2: message.send without text but with media is one', () => {
    expect(kindOf(send({ media_refs: ['mu_1'] }))).toBe('frame');
  });

  test('KEE3, ENV17: any number that a double can echo', () => {
    const ping = (ts: string) => decode(`{"type":"ping","payload":{"ts":${ts}}}`);
    for (const ts of ['1724000000000', '0.5', '-3', '9007199254740991']) expect(frameOf(ping(ts)).payload).toEqual({ ts: Number(ts) });
    for (const ts of ['9007199254740993', '1724000000000000001', '1e400', '"5"', 'null']) expect(messageOf(ping(ts))).toMatch(/^ts:/);
  });

  test('SYN3, SYN4: a cursor is a whole number from 0, or is missing', () => {
    const sync = (payload: object) => decode(JSON.stringify({ type: 'sync', payload }));
    expect(sync({}).kind).toBe('frame');
    expect(sync({ cursor: 0 }).kind).toBe('frame');
    for (const cursor of [-1, 1.5, '7', null]) expect(messageOf(sync({ cursor }))).toMatch(/^cursor:/);
  });

  test('UPL6: a size of at least one whole byte', () => {
    const start = (size: number) =>
      decode(JSON.stringify({ type: 'media.upload.start', payload: { media_ref: 'mu', kind: 'file', mime: 'a/b', size } }));
    for (const size of [0, -1, 1.5]) expect(messageOf(start(size))).toMatch(/^size:/);
    expect(start(1).kind).toBe('frame');
    expect(start(1e15).kind).toBe('frame');
  });

  test('HEL8, HEL9, HEL10: who is there is a matter of `auth`, the rest of `unsupported`; caps of any shape are no reason to refuse', () => {
    const hello = (payload: object) => decode(JSON.stringify({ type: 'hello', payload: { token: 't', device_id: 'd', ...payload } }));
    for (const who of [
      { token: '' },
      { token: 5 },
      { token: undefined },
      { device_id: '' },
      { device_id: 'd'.repeat(129) },
      { device_id: null },
    ])
      expect(hello(who)).toMatchObject({ kind: 'invalid', code: 'auth' });
    expect(hello({ device_name: 'n'.repeat(129) })).toMatchObject({ kind: 'invalid', code: 'unsupported' });
    expect(hello({ device_id: '😀'.repeat(128) }).kind).toBe('frame');
    for (const caps of [
      undefined,
      null,
      5,
      'x',
      [],
      { push: 5, min_protocol: 'two', cursors: 'yes' },
      { min_protocol: 1 },
      { min_protocol: 0 },
    ])
      expect(hello({ caps }).kind).toBe('frame');
    expect(hello({ caps: { min_protocol: 2 } })).toMatchObject({ kind: 'version' });
  });
});

describe('LNK: what the agent link adds', () => {
  const from = (more: object) =>
    decodeAgent(JSON.stringify({ type: 'commentary', seq: 1, chat_id: 'c', payload: { message_id: 'm', text: 'x' }, ...more }));
  test('LNK6: seq, ack and turn_id are in the frame', () => {
    expect(frameOf(from({ ack: 0, turn_id: 'tn' }))).toMatchObject({ seq: 1, ack: 0, turn_id: 'tn' });
    expect(frameOf(from({ turn_id: null }))).not.toHaveProperty('turn_id');
    expect(frameOf(decodeAgent('{"type":"ack","ack":7}'))).toEqual({ type: 'ack', payload: {}, ack: 7 });
  });
  test('LNK5: a durable frame has a seq; wrong ones are named, and come back when they can be acked', () => {
    for (const seq of [undefined, 0, -1, 1.5, '1', null]) expect(messageOf(from({ seq }))).toMatch(/^seq:/);
    expect(messageOf(from({ ack: -1 }))).toMatch(/^ack:/);
    expect(messageOf(from({ turn_id: 5 }))).toMatch(/^turn_id:/);
    expect(from({ seq: 3, payload: {} })).toMatchObject({ kind: 'invalid', seq: 3 });
  });
  test('LNK28: frames of a turn name it, others need not', () => {
    expect(messageOf(decodeAgent('{"type":"turn.accepted","seq":1}'))).toBe('turn_id: missing');
    expect(decodeAgent('{"type":"turn.accepted","seq":1,"turn_id":"tn"}').kind).toBe('frame');
  });
});

describe('text', () => {
  test('ENV16: everything is carried exactly but U+0000 and lone surrogates', () => {
    const text = 'Grüße مرحبا שלום 👨‍👩‍👧‍👦 e\u0301 \u202e\u200b\ufeff\ufffe\u0001';
    expect(frameOf(decode(send({ text }))).payload).toEqual({ text });
    const escaped = '{"type":"message.send","payload":{"text":"\\ud83d\\ude00 \\u0041"}}';
    expect(decode(escaped)).toMatchObject({ text: escaped, frame: { payload: { text: '😀 A' } } });
    expect(frameOf(decode('{"type":"message.send","payload":{"text":"a\\u0000\\ud800b\\udc00","k\\u0000":1}}')).payload).toEqual({
      text: 'a\ufffd\ufffdb\ufffd',
      'k\ufffd': 1,
    });
    expect(frameOf(decode(send({ text: 'raw \ud800 half' }).replace('\\ud800', '\ud800'))).payload).toEqual({ text: 'raw \ufffd half' });
  });

  test('the cleaned text decodes to the same frame', () => {
    const decoded = decode('{"type":"message.send","id":"\\u0000","payload":{"text":"a\\u0000","__proto__":{"x":"\\ud800"}}}');
    if (decoded.kind !== 'frame') throw new Error(decoded.kind);
    expect(decoded.text).toContain('"__proto__"');
    const again = decode(decoded.text);
    expect(again.kind === 'frame' && again.frame).toEqual(decoded.frame);
  });
});

describe('any input', () => {
  const pollution = () => Object.keys(Object.prototype).length + Object.keys(Array.prototype).length;
  const answers = (source: string) => {
    for (const one of [decode(source), decodeAgent(source)]) {
      expect(['frame', 'malformed', 'version', 'unknown', 'invalid']).toContain(one.kind);
      if ('id' in one) expect(isRequestId(one.id)).toBe(true);
      if (one.kind !== 'frame') expect(one.message.length).toBeLessThan(400);
    }
    expect(pollution()).toBe(0);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  };
  const types = fc.oneof(fc.constantFrom(...frameTypes), fc.string());
  const strange = fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'polluted', 'chat_id', 'text', '');

  test('ENV26: any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), answers), { numRuns: 500 });
  });
  test('ENV26: any JSON', () => {
    fc.assert(fc.property(fc.json({ maxDepth: 5 }), answers), { numRuns: 500 });
  });
  test('ENV26: any envelope', () => {
    const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.dictionary(strange, fc.jsonValue({ maxDepth: 2 })));
    const envelope = fc.record(
      {
        v: fc.constantFrom(1, 1, 1, 2),
        id: value,
        type: types,
        chat_id: value,
        thread_id: value,
        payload: value,
        seq: value,
        ack: value,
        turn_id: value,
      },
      { requiredKeys: ['type'] },
    );
    fc.assert(
      fc.property(envelope, (frame) => answers(JSON.stringify(frame))),
      { numRuns: 2_000 },
    );
  });
  test('ENV15: own keys named __proto__ and constructor stay data', () => {
    const frame = frameOf(
      decode('{"type":"message.send","payload":{"text":"x\\u0000","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}'),
    );
    expect(Object.getPrototypeOf(frame.payload)).toBe(Object.prototype);
    expect(Object.hasOwn(frame.payload, '__proto__')).toBe(true);
    expect(pollution()).toBe(0);
  });
});
