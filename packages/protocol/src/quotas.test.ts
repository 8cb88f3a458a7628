import { expect, test } from '@jest/globals';
import { Compile } from 'typebox/compile';
import { limits } from './limits.js';
import { defaultQuotas, Quotas } from './quotas.js';

test('LIM2, LIM3, LIM6, LIM7, LIM10, LIM12, LIM13, LIM14, LIM15: the defaults are the numbers of the rules', () => {
  expect(limits).toMatchObject({ text_bytes: 65_536, frame_bytes: 262_144, hello_bytes: 65_536, json_depth: 32 });
  expect(defaultQuotas).toMatchObject({
    sends_per_second: 20,
    sends_burst: 300,
    frames_per_second: 100,
    frames_burst: 1_000,
    devices: 1_000,
    connections: 1_000,
    running_turns: 50,
    waiting_per_lane: 100,
    outbox_max_age_ms: 14 * 24 * 3_600 * 1_000,
    file_bytes: 100 * 2 ** 20,
    stored_bytes: 10 * 2 ** 30,
    upload_bytes_per_day: 20 * 2 ** 30,
    outbox_max_frames: 100_000,
    history_max_age_ms: 0,
    weight: 10,
  });
});

test('the defaults are quotas, frozen, and what is no whole number from 0 is none', () => {
  const validator = Compile(Quotas);
  expect(validator.Check(defaultQuotas)).toBe(true);
  expect(Object.isFrozen(defaultQuotas)).toBe(true);
  for (const devices of [-1, 1.5, '5', null]) expect(validator.Check({ ...defaultQuotas, devices })).toBe(false);
});
