/** ENV26 over real sockets: nothing that is said stops the loop for 100 ms. What it does to the protocol is looked at in tests/flow. */
import { realPatience } from '@iris/testkit';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { runs, seed, sentBy } from '../fuzz/frames.js';
import { type RealRig, realRig } from '../fuzz/real-rig.js';
import { talk } from '../fuzz/talk.js';

jest.setTimeout(300_000);
const unhandled: unknown[] = [];
const note = (error: unknown) => void unhandled.push(error);
let rig: RealRig;
beforeAll(async () => {
  process.on('unhandledRejection', note);
  rig = await realRig();
});
afterAll(async () => {
  process.off('unhandledRejection', note);
  await rig?.close();
});

/**
 * The longest that the loop was held by work. Gaps of the clock alone would count what other processes of the machine take; so a gap counts for
 * as much of it as this process has worked.
 */
function loopWatch() {
  let worst = 0;
  let at = performance.now();
  let cpu = process.cpuUsage();
  const timer = setInterval(() => {
    const now = performance.now();
    const used = process.cpuUsage(cpu);
    worst = Math.max(worst, Math.min(now - at, (used.user + used.system) / 1000));
    at = now;
    cpu = process.cpuUsage();
  }, 5);
  return {
    stop() {
      clearInterval(timer);
      return worst;
    },
  };
}

const limits = { seed, numRuns: runs(40), endOnFailure: process.env.IRIS_FUZZ_SEED === undefined };

test(`ENV26: seed ${seed}, ${limits.numRuns} samples: the process lives, answers everything once, and its loop is not held for 100 ms`, async () => {
  const patience = realPatience(20_000);
  let names = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(sentBy('device-up'), { minLength: 1, maxLength: 14 }), async (sent) => {
      const { device_token } = await rig.tenant();
      const say = () => {
        const first = { type: 'hello', payload: { token: device_token, device_id: `fuzz-${++names}`, caps: { cursors: true } } };
        return talk(rig.device, patience, { first, sent, within_ms: 15_000 });
      };
      const watch = loopWatch();
      const { faults } = await say();
      let held = watch.stop();
      // A collection of garbage or a first compilation may fall into it: only what holds the loop each time is the input's doing.
      for (let again = 0; held > 100 && again < 3; again++) {
        const next = loopWatch();
        await say();
        held = Math.min(held, next.stop());
      }
      const said = [...faults, ...unhandled.splice(0).map(String), ...rig.errors.splice(0), ...Object.keys(Object.prototype)];
      if (held > 100) said.push(`the loop was held for ${Math.round(held)} ms`);
      expect(said).toEqual([]);
    }),
    limits,
  );
});

test('ENV26 LIM1: what is large, deep or long is not what holds the loop', async () => {
  const { device_token } = await rig.tenant();
  const first = { type: 'hello', payload: { token: device_token, device_id: 'large' } };
  const fill = (text: string) => ({ kind: 'text' as const, text });
  const nearly = 250 * 1024;
  const sent = [
    fill(`{"type":"message.send","id":1,"payload":{"text":${JSON.stringify('\u0000\ud800'.repeat(20_000))}}}`),
    fill(`{"type":"ping","payload":{"ts":1,"x":${'['.repeat(nearly / 2)}${']'.repeat(nearly / 2)}}}`),
    fill(`{"type":"ping","id":3,"payload":{"ts":1,"x":[${'{},'.repeat(nearly / 3)}{}]}}`),
    fill(`{"type":"ping","id":4,"payload":{${Array.from({ length: 15_000 }, (_, i) => `"k${i}":${i}`).join()}}}`),
    fill(`{"type":"history","id":5,"chat_id":${JSON.stringify('é'.repeat(120_000))}}`),
    fill(`{"type":"search","id":6,"payload":{"query":${JSON.stringify('"a -'.repeat(256))}}}`),
    fill(
      `{"type":"message.delete","id":7,"chat_id":"android:default","payload":{"message_ids":[${Array.from({ length: 1_000 }, (_, i) => `"m_${i}"`).join()}]}}`,
    ),
    fill(`{"type":"ping","id":8,"payload":{"ts":${'1'.repeat(100_000)}}}`),
    fill(`{"type":"${'.'.repeat(nearly)}","id":9}`),
  ];
  const held: number[] = [];
  for (let n = 0; n < 3; n++) {
    const watch = loopWatch();
    const { faults } = await talk(rig.device, realPatience(20_000), { first, sent, within_ms: 15_000 });
    held.push(watch.stop());
    expect(faults).toEqual([]);
  }
  expect(Math.min(...held)).toBeLessThan(100);
});
