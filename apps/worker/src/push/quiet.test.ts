import type { ChatId, DeviceId, TenantId } from '@iris/protocol';
import { expect, test } from '@jest/globals';
import { isQuiet, unwanted } from './quiet.js';

const at = (text: string) => Date.parse(text);

test.each([
  ['22:00', '07:00', 'UTC', '2026-01-10T21:59:59Z', false],
  ['22:00', '07:00', 'UTC', '2026-01-10T22:00:00Z', true],
  ['22:00', '07:00', 'UTC', '2026-01-11T06:59:59Z', true],
  ['22:00', '07:00', 'UTC', '2026-01-11T07:00:00Z', false],
  ['09:00', '17:00', 'America/New_York', '2026-07-01T13:30:00Z', true],
  ['09:00', '17:00', 'America/New_York', '2026-01-05T13:30:00Z', false],
  ['00:00', '00:30', 'Asia/Kathmandu', '2026-01-05T18:20:00Z', true],
  ['08:00', '08:00', 'UTC', '2026-01-05T08:00:00Z', false],
] as const)('quiet from %s to %s in %s: at %s %s', (from, to, time_zone, time, quiet) => {
  expect(isQuiet({ from, to, time_zone }, at(time))).toBe(quiet);
});

test('a rule is about its lane, or about all', () => {
  const rule = { tenant_id: 't' as TenantId, device_id: 'd' as DeviceId, thread_id: null, quiet: null };
  const lane = { chat_id: 'a' as ChatId, thread_id: null };
  expect(unwanted([{ ...rule, chat_id: 'a' as ChatId, muted_until: 10 }], lane, 9)).toBe('muted');
  expect(unwanted([{ ...rule, chat_id: 'a' as ChatId, muted_until: 10 }], lane, 10)).toBeUndefined();
  expect(unwanted([{ ...rule, chat_id: 'b' as ChatId, muted_until: 10 }], lane, 9)).toBeUndefined();
  expect(unwanted([{ ...rule, chat_id: null, muted_until: 10 }], lane, 9)).toBe('muted');
});
