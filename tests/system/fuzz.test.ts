/** ENV26 over real sockets: nothing that is said stops the loop for 100 ms. What it does to the protocol is looked at in tests/flow. */
import { type AnyFrame, faultOf, realPatience, testDevice } from '@iris/testkit';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { anySent, runs, type Sent, seed, sentBy } from '../fuzz/frames.js';
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
const patience = realPatience(20_000);
const within_ms = 15_000;
let names = 0;

/** What is wrong with what came of it: also that the loop was held by it. */
async function harmOf(say: () => Promise<readonly string[]>): Promise<string[]> {
  const watch = loopWatch();
  const faults = await say();
  let held = watch.stop();
  // A collection of garbage or a first compilation may fall into it: only what holds the loop each time is the input's doing.
  for (let again = 0; held > 100 && again < 3; again++) {
    const next = loopWatch();
    await say();
    held = Math.min(held, next.stop());
  }
  const said = [...faults, ...unhandled.splice(0).map(String), ...rig.errors.splice(0), ...Object.keys(Object.prototype)];
  if (held > 100) said.push(`the loop was held for ${Math.round(held)} ms`);
  return said;
}

/** An agent says all of it behind its hello; its link lives, or was closed. */
async function asAgent(token: string, sent: readonly Sent[]): Promise<readonly string[]> {
  const faults: string[] = [];
  let done = false;
  const wire = await rig.agent({
    message(data) {
      const frame = JSON.parse(String(data)) as AnyFrame;
      const fault = faultOf(frame, 'agent_down');
      if (fault !== undefined) faults.push(`${fault}: ${String(data).slice(0, 200)}`);
      if (frame.type === 'error' && frame.payload.code === 'internal') faults.push(`internal: ${String(data).slice(0, 200)}`);
      if (frame.type === 'pong' && frame.payload.ts === 4711) done = true;
      patience.stir();
    },
    ping: (data) => wire.pong(data),
    closed() {
      done = true;
      patience.stir();
    },
  });
  const boot = `boot-${++names}`;
  const hello = { agent: 'fuzz', version: '1', install_id: boot, boot_id: boot, caps: {}, last_seq: 0, open_turns: [], token };
  wire.send(JSON.stringify({ v: 1, type: 'hello', payload: hello }));
  for (const one of sent) {
    if (one.kind === 'text') wire.send(one.text);
    else wire.send(one.bytes, one.as);
  }
  wire.send('{"v":1,"type":"ping","payload":{"ts":4711}}');
  await patience
    .wait(() => done || undefined, { within_ms, describe: () => '' })
    .catch(() => faults.push('the ping behind it is not answered'));
  wire.close();
  return faults;
}

describe(`ENV26: seed ${seed}, ${limits.numRuns} samples each: the process lives, and its loop is not held for 100 ms`, () => {
  test('by a device, which is answered everything once', () =>
    fc.assert(
      fc.asyncProperty(fc.array(sentBy('device-up'), { minLength: 1, maxLength: 14 }), async (sent) => {
        const { device_token } = await rig.tenant();
        const say = async () => {
          const first = { type: 'hello', payload: { token: device_token, device_id: `fuzz-${++names}`, caps: { cursors: true } } };
          return (await talk(rig.device, patience, { first, sent, within_ms })).faults;
        };
        expect(await harmOf(say)).toEqual([]);
      }),
      limits,
    ));

  test('by a stranger, who is turned away', () =>
    fc.assert(
      fc.asyncProperty(fc.array(anySent, { minLength: 1, maxLength: 6 }), async (sent) => {
        const say = async () => {
          const { faults, closed, frames } = await talk(rig.device, patience, { sent, within_ms });
          const told = frames.filter(({ type }) => type !== 'error').map(({ type }) => `is told ${type}`);
          return [...faults, ...told, ...(closed === undefined ? ['is not turned away'] : [])];
        };
        expect(await harmOf(say)).toEqual([]);
      }),
      limits,
    ));

  test('by an agent', () =>
    fc.assert(
      fc.asyncProperty(fc.array(sentBy('agent-up'), { minLength: 1, maxLength: 14 }), async (sent) => {
        const { agent_token } = await rig.tenant();
        expect(await harmOf(() => asAgent(agent_token, sent))).toEqual([]);
      }),
      limits,
    ));
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

test('C100 ENV6 ENV8 ENV26: a hundred thousand frames of no shape beside a thousand devices: the process lives, and each of those is answered meanwhile and afterwards', async () => {
  const { device_token } = await rig.tenant();
  const devices = Array.from({ length: 1_000 }, (_, n) =>
    testDevice({ device_id: `healthy ${n}`, token: device_token, patience: realPatience(60_000), dial: rig.device }),
  );
  for (let n = 0; n < devices.length; n += 50) await Promise.all(devices.slice(n, n + 50).map((device) => device.join()));
  const all = async () => {
    for (const answer of await Promise.all(devices.map((device) => device.request('ping', { ts: 1 })))) expect(answer.type).toBe('pong');
  };
  const text = (value: unknown, id?: number) => ({
    kind: 'text' as const,
    text: JSON.stringify(typeof value === 'object' && value !== null && id !== undefined ? { ...value, id } : value),
  });
  // Ten in a minute that are no frames at all end a connection.
  const none = [
    { kind: 'text' as const, text: '{"type":' },
    text([]),
    text(null),
    text({}),
    text({ payload: {} }),
    text({ type: 7 }),
    text('error'),
  ];
  const shapes = [
    { type: 'error', payload: {} },
    { type: 'constructor', payload: {} },
    { type: '__proto__' },
    { type: 'message.send', payload: null },
    { type: 'message.send', payload: [] },
    { type: 'ping', v: 0, payload: {} },
    { type: 'ping', v: 2, payload: {} },
    { type: 'ping', v: '1', payload: {} },
    { type: 'history' },
  ];
  const sent = [...none, ...Array.from({ length: 493 }, (_, n) => text(shapes[n % shapes.length], n % 2 === 0 ? n + 1 : undefined))];
  const { device_token: theirs } = await rig.tenant();
  const before = process.pid;
  // Beyond a thousand at once the rate of frames would end it first.
  for (let round = 0; round < 20; round++) {
    const hostile = Array.from({ length: 10 }, (_, n) => {
      const first = { type: 'hello', payload: { token: theirs, device_id: `hostile ${round}.${n}`, caps: {} } };
      return talk(rig.device, realPatience(60_000), { first, sent, within_ms: 60_000 });
    });
    const [told] = await Promise.all([Promise.all(hostile), all()]);
    expect(told.flatMap(({ faults }) => faults)).toEqual([]);
    expect(told.flatMap(({ closed }) => closed ?? [])).toEqual([]);
  }
  await all();
  expect(devices.filter(({ connections, connected }) => !connected || connections.length !== 1)).toEqual([]);
  expect([process.pid, unhandled, rig.errors, Object.keys(Object.prototype)]).toEqual([before, [], [], []]);
  for (const device of devices) device.close();
});
