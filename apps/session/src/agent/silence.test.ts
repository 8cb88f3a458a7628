import type { AgentId, TenantId, TurnId } from '@iris/protocol';
import { type Log, silentLog } from '@iris/runtime';
import { manualClock, recordingMeter } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import type { TurnState } from './room.js';
import { createSilence } from './silence.js';

const agent_id = 'ag' as AgentId;
const state = (fields: Partial<TurnState> = {}): readonly [TenantId, TurnState] => [
  'tenant' as TenantId,
  {
    turn_id: 'tn' as TurnId,
    agent_id,
    chat_id: 'c',
    thread_id: null,
    accepted: true,
    ended: false,
    reason: 'processing',
    ...fields,
  } as TurnState,
];

function rig() {
  const clock = manualClock();
  const meter = recordingMeter();
  const said: string[] = [];
  const log: Log = { ...silentLog, warn: (event) => void said.push(event), info: (event) => void said.push(event) };
  const silence = createSilence({ clock, log, meter, silence_ms: 600_000 });
  const look = async (after_ms: number, ...running: (readonly [TenantId, TurnState])[]) => {
    await clock.advance(after_ms);
    silence.look(running);
    return said.splice(0);
  };
  return { clock, meter, silence, look };
}

test('LNK36: ten minutes without a word: told once, counted, and again for the next silence', async () => {
  const { meter, silence, look } = rig();
  const silent = () => meter.total('iris_session_turns_silent');
  expect(await look(0, state())).toEqual([]);
  expect(await look(599_999, state())).toEqual([]);
  expect(await look(1, state())).toEqual(['session.turn_silent']);
  expect(await look(60_000, state())).toEqual([]);
  expect(silent()).toBe(1);
  silence.heard('another' as AgentId, 'tn' as TurnId);
  expect(silent()).toBe(1);
  silence.heard(agent_id, 'tn' as TurnId);
  expect(silent()).toBe(0);
  expect(await look(1, state())).toEqual(['session.turn_heard_again']);
  expect(await look(599_999, state())).toEqual(['session.turn_silent']);
  expect(meter.total('iris_session_turns_silent_total')).toBe(2);
  expect(await look(1_000)).toEqual([]);
  expect(silent()).toBe(0);
});

test('LNK36: what is not accepted or has ended is not silent; a person who is waited for is said, and not held against the agent', async () => {
  const { meter, look } = rig();
  const waits = state({ reason: 'waiting_input' });
  for (const other of [state({ accepted: false }), state({ ended: true })]) {
    await look(0, other);
    expect(await look(700_000, other)).toEqual([]);
  }
  await look(0, waits);
  expect(await look(600_000, waits)).toEqual(['session.turn_silent']);
  expect(meter.total('iris_session_turns_silent')).toBe(0);
  await look(1_000, state());
  expect(meter.total('iris_session_turns_silent')).toBe(1);
});
