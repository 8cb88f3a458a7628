import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { encode, splice } from './encode.js';
import type { DownFrame } from './frame.js';
import { type ChatId, laneKey, laneOfKey, type ThreadId } from './ids.js';

const parse = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
const update = (text: string): DownFrame => ({ type: 'message.update', chat_id: 'c' as ChatId, payload: { message_id: 'm', text } });

test('ENV19: encode puts v first, and what it writes reads back', () => {
  const bytes = encode(update('é😀'));
  expect(new TextDecoder().decode(bytes)).toMatch(/^\{"v":1,"type"/);
  expect(parse(bytes)).toEqual({ v: 1, ...update('é😀') });
});

test('ENV3, ENV18, ENV25: splice adds cursor and id to any frame, for any id, without touching the original', () => {
  const id = fc.oneof(fc.maxSafeInteger(), fc.string({ unit: 'binary', minLength: 1, maxLength: 64 }));
  fc.assert(
    fc.property(fc.string(), fc.option(id, { nil: undefined }), fc.option(fc.nat(), { nil: undefined }), (text, id, cursor) => {
      const bytes = encode(update(text));
      const before = bytes.slice();
      const fields = { ...(id === undefined ? {} : { id }), ...(cursor === undefined ? {} : { cursor }) };
      expect(parse(splice(bytes, fields))).toEqual({ v: 1, ...fields, ...update(text) });
      expect(bytes).toEqual(before);
    }),
  );
});

test('lane keys: there and back for our ids, and no made-up id reads as another lane', () => {
  const lanes = [
    { chat_id: 'android:default' as ChatId, thread_id: null },
    { chat_id: 'android:default' as ChatId, thread_id: 't_1' as ThreadId },
  ];
  for (const lane of lanes) expect(laneOfKey(laneKey(lane))).toEqual(lane);
  const keys = lanes.map(laneKey);
  expect(keys).not.toContain(laneKey({ chat_id: 'android:default\nt_1' as ChatId, thread_id: null }));
  expect(keys).not.toContain(laneKey({ chat_id: 'android:default\n' as ChatId, thread_id: null }));
  expect(new Set(keys).size).toBe(2);
});
