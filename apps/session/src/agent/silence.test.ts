import type { AgentId, TenantId, TurnId } from '@iris/protocol';
import { type Log, silentLog } from '@iris/runtime';
import { manualClock, recordingMeter } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import type { Heard, TurnState } from './room.js';
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

function rig(clock = manualClock()) {
  const meter = recordingMeter();
  const said: string[] = [];
  const log: Log = { ...silentLog, warn: (event) => void said.push(event), info: (event) => void said.push(event) };
  const noted: Heard[] = [];
  const put = (_: TenantId, values: Record<string, string>) => void noted.push(JSON.parse(values['heard:tn']!) as Heard);
  const silence = createSilence({ clock, log, meter, silence_ms: 600_000, settle_ms: 7_000, put });
  const lookAs = async (after_ms: number, before: Heard | undefined, listening: number, ...running: (readonly [TenantId, TurnState])[]) => {
    await clock.advance(after_ms);
    silence.look(
      running.map(([tenant_id, one]) => [tenant_id, one, before] as const),
      listening,
    );
    return said.splice(0);
  };
  const look = (after_ms: number, ...running: (readonly [TenantId, TurnState])[]) => lookAs(after_ms, undefined, 0, ...running);
  return { clock, meter, silence, look, lookAs, noted };
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

test('LNK36: another instance goes on counting where the last one was, and tells again nothing that was told', async () => {
  const first = rig();
  const begun = first.clock.now();
  await first.look(0, state());
  expect(await first.look(59_999, state())).toEqual([]);
  expect(first.noted).toEqual([]);
  await first.look(1, state());
  expect(first.noted).toEqual([{ at: begun, told: false }]);
  first.silence.heard(agent_id, 'tn' as TurnId);
  await first.look(30_000, state());
  expect(first.noted).toHaveLength(1);
  await first.look(30_000, state());
  expect(first.noted.at(-1)).toEqual({ at: begun + 60_000, told: false });

  const second = rig(first.clock);
  const goOn = (after_ms: number) => second.lookAs(after_ms, first.noted.at(-1), 0, state());
  expect(await goOn(0)).toEqual([]);
  expect(await goOn(539_999)).toEqual([]);
  expect(await goOn(1)).toEqual(['session.turn_silent']);
  expect(second.noted.at(-1)).toEqual({ at: begun + 60_000, told: true });

  const third = rig(first.clock);
  expect(await third.lookAs(60_000, second.noted.at(-1), 0, state())).toEqual([]);
  expect(await third.lookAs(60_000, second.noted.at(-1), 0, state())).toEqual([]);
  expect([third.meter.total('iris_session_turns_silent'), third.meter.total('iris_session_turns_silent_total')]).toEqual([1, 0]);
  third.silence.heard(agent_id, 'tn' as TurnId);
  await third.lookAs(0, second.noted.at(-1), 0, state());
  expect(third.noted.at(-1)).toMatchObject({ told: false });
});

test('LNK36: who takes over late, or stood still, listens first: the agent may be speaking', async () => {
  const { clock, silence, lookAs } = rig();
  const begun = clock.now();
  const old = { at: begun - 900_000, told: false };
  expect(await lookAs(0, old, 0, state())).toEqual([]);
  expect(await lookAs(6_999, old, 0, state())).toEqual([]);
  silence.heard(agent_id, 'tn' as TurnId);
  expect(await lookAs(1, old, 0, state())).toEqual([]);
  // Frozen for an hour.
  expect(await lookAs(3_600_000, old, begun + 3_606_999, state())).toEqual([]);
  expect(await lookAs(7_000, old, begun + 3_606_999, state())).toEqual(['session.turn_silent']);
});

test('LNK36: what is heard of a turn before its first look counts', async () => {
  const { clock, silence, lookAs } = rig();
  const old = { at: clock.now() - 599_000, told: true };
  silence.heard(agent_id, 'tn' as TurnId);
  expect(await lookAs(1_000, old, 0, state())).toEqual([]);
  expect(await lookAs(598_999, old, 0, state())).toEqual([]);
  expect(await lookAs(1, old, 0, state())).toEqual(['session.turn_silent']);
});
