import { describe, expect, test } from '@jest/globals';
import { decode } from './decode.js';
import { glance } from './glance.js';

const bytes = (text: string) => new TextEncoder().encode(text);
const long = 'x'.repeat(300);

describe('LIM7: what a frame says first', () => {
  test.each([
    ['{"type":"message.send","id":7,"payload":{"text":"hi"}}', { type: 'message.send', id: 7 }],
    ['{"id":"s1","type":"message.send","payload":{}}', { type: 'message.send', id: 's1' }],
    [' { "v" : 1 , "chat_id":"android:default", "type":"ping","id":-3}', { type: 'ping', id: -3 }],
    ['{"v":1,"type":"ack","id":0,"payload":{"cursor":1}}', { type: 'ack', id: 0 }],
    ['{"type":"nonsense"}', { type: 'nonsense' }],
    [`{"type":"message.send","id":"${'i'.repeat(64)}","payload":{"text":"${long}"}}`, { type: 'message.send', id: 'i'.repeat(64) }],
    // It does not read on.
    ['{"type":"message.send","id":7,"payload":', { type: 'message.send', id: 7 }],
  ])('%s', (text, said) => expect(glance(bytes(text))).toEqual(said));

  test.each([
    '{"payload":{"text":"hi"},"type":"message.send","id":7}',
    '{"type":"message.send","payload":{},"id":7}',
    '{"type":"message.send","id":null,"payload":{}}',
    '{"type":"message.send","id":1.5}',
    '{"type":"message.send","id":1e3}',
    '{"type":"message.send","id":9007199254740993}',
    '{"type":"message.send","id":""}',
    `{"type":"message.send","id":"${'i'.repeat(65)}"}`,
    '{"type":"message.send","id":"a\\u0041"}',
    '{"type":"message.send","id":"ä"}',
    '{"type":"message.send","id":"€"}',
    `{"chat_id":"${long}","type":"message.send","id":7}`,
    '{"type":7,"id":7}',
    '["type","message.send"]',
    '"type"',
    '',
    '{',
    '{}',
    '{"id":7}',
  ])('has to be decoded: %s', (text) => expect(glance(bytes(text))).toBeUndefined());

  test('is what decoding finds, for whatever order and spaces', () => {
    for (const id of [1, 'one', 'a b', '{"', undefined])
      for (const order of [
        ['type', 'id', 'chat_id', 'payload'],
        ['chat_id', 'id', 'type', 'payload'],
        ['payload', 'type', 'id'],
      ])
        for (const space of [0, 2]) {
          const frame: Record<string, unknown> = { type: 'message.send', id, chat_id: 'android:default', payload: { text: 'hi' } };
          const text = JSON.stringify(Object.fromEntries(order.map((name) => [name, frame[name]])), null, space);
          const found = glance(bytes(text));
          if (found === undefined) continue;
          const decoded = decode(text);
          expect(decoded).toMatchObject({ kind: 'frame', frame: { type: found.type } });
          expect(found.id).toEqual(decoded.kind === 'frame' ? decoded.frame.id : undefined);
        }
  });
});
