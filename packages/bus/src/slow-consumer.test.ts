import { type Clock, silentLog } from '@iris/runtime';
import { recordingMeter } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import { watchPace } from './slow-consumer.js';

/** A loop that turns when the test says so, and a server that answers when it does. */
function rig() {
  let now = 0;
  let bytes = 0;
  let tick = () => {};
  const answers: (() => void)[] = [];
  const clock = {
    now: () => now,
    every(_ms: number, run: () => void) {
      tick = run;
      return { cancel: () => {} };
    },
  } as Clock;
  const meter = recordingMeter();
  const pace = watchPace({
    clock,
    log: silentLog,
    meter,
    ping: () => new Promise((resolve) => void answers.push(resolve)),
    bytesIn: () => bytes,
    server_id: 'one',
  });
  return {
    pace,
    count: (why: string) => meter.total('iris_bus_slow_consumer_total', { why }),
    all: () => meter.total('iris_bus_slow_consumer_total'),
    /** So long passes before the loop turns. */
    async turns(ms: number, more: { brings?: number; answered?: boolean } = {}) {
      now += ms;
      bytes += more.brings ?? 0;
      if (more.answered !== false) for (const answer of answers.splice(0)) answer();
      await Promise.resolve().then(() => {});
      await new Promise<void>((resolve) => setImmediate(resolve));
      tick();
    },
  };
}

test('C47: a process that keeps up is not slow, however much comes', async () => {
  const { turns, all } = rig();
  for (let n = 0; n < 20; n++) await turns(500 + (n % 3) * 100, { brings: 1_000_000 });
  expect(all()).toBe(0);
});

test('C47: a process that stood still is told once per stillness, answered or not', async () => {
  const { turns, count, all } = rig();
  await turns(500);
  await turns(10_500, { brings: 5_000_000, answered: false });
  expect([count('stood_still'), all()]).toEqual([1, 1]);
  for (let n = 0; n < 5; n++) await turns(500, { brings: 5_000 });
  expect(all()).toBe(1);
  await turns(1_499);
  expect(all()).toBe(1);
  await turns(1_500);
  expect(count('stood_still')).toBe(2);
});

test('C47: an answer that stands behind what keeps coming is a backlog; one of a server that sends nothing is not', async () => {
  const { turns, count, all } = rig();
  await turns(500);
  for (let n = 0; n < 6; n++) await turns(500, { brings: 1_000_000, answered: false });
  expect([count('backlog'), all()]).toEqual([1, 1]);
  await turns(500, { brings: 1_000 });
  await turns(500);
  for (let n = 0; n < 20; n++) await turns(500, { answered: false });
  // What it had kept comes with its answer.
  await turns(500, { brings: 1_000_000 });
  await turns(500);
  expect(all()).toBe(1);
});

test('C47: a connection that a server ends without a word, and lives on, was a slow consumer’s', () => {
  const { pace, count } = rig();
  pace.lost(false);
  pace.regained('one');
  expect(count('cut_off')).toBe(1);
  // It was restarted, it said why, or another one took us.
  pace.lost(false);
  pace.regained('two');
  pace.lost(true);
  pace.regained('two');
  expect(count('cut_off')).toBe(1);
});
