/**
 * ENV26: anything at all as a frame. `IRIS_FUZZ_SEED=7` tries others, `IRIS_FUZZ_RUNS=1000` ten times as many; what fails is told with its
 * seed and path.
 */
import { makeWorld, type TestDevice, type World, type WorldTenant } from '@iris/testkit';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { anySent, runs, type Sent, seed, sentBy } from '../fuzz/frames.js';
import { talk } from '../fuzz/talk.js';

jest.setTimeout(600_000);
let world: World;
const unhandled: unknown[] = [];
const note = (error: unknown) => void unhandled.push(error);
beforeAll(async () => {
  process.on('unhandledRejection', note);
  process.on('uncaughtException', note);
  world = await makeWorld();
});
afterAll(() => {
  process.off('unhandledRejection', note);
  process.off('uncaughtException', note);
  for (const member of [...world.edges, ...world.sessions]) member.kill();
  world.time.end();
});

const limits = { seed, numRuns: runs(80), endOnFailure: process.env.IRIS_FUZZ_SEED === undefined };
/** A session answers within 10 s, or the edge says `internal`. */
const within_ms = 12_000;
const shown = (sent: readonly Sent[]) =>
  sent.map((one) => (one.kind === 'text' ? one.text.slice(0, 300) : `${one.as} ${Buffer.from(one.bytes).toString('hex')}`));

/** Nothing has become of the world by it. */
async function unharmed(faults: readonly string[], sent: readonly Sent[]) {
  const polluted = Object.keys(Object.prototype);
  const errors = world.events.all.filter(({ level }) => level === 'error');
  if (faults.length + unhandled.length + polluted.length + errors.length === 0) return;
  const tail = world.events.tail();
  const said = [...faults, ...unhandled.splice(0).map(String), ...polluted.map((name) => `Object.prototype.${name}`)];
  (world.events.all as unknown[]).length = 0;
  throw new Error(`${said.join('\n')}${tail}\nof:\n${shown(sent).join('\n')}`);
}

/** A channel, and a turn that runs, with a message and a picker open. */
async function something(tenant: WorldTenant, device: TestDevice): Promise<Readonly<Record<string, string>>> {
  const agent = tenant.agent({ edge: 1 });
  await agent.connect();
  await device.request('channel.create', { name: 'Channel' });
  const { message_id } = (await device.send('known')).payload;
  const turn = await agent.turn();
  turn.picker('choice', { title: 'Which?', choices: [{ value: 'a', label: 'A' }] });
  turn.start();
  turn.delta('so far');
  const picker = await device.next('picker.choice');
  const start = await device.next('message.start');
  return { m_known: message_id!, m_run: start.payload.message_id!, pk_known: picker.payload.picker_id! };
}
let names = 0;
const helloOf = (token: string) => ({
  type: 'hello',
  payload: { token, device_id: `fuzz-${++names % 50}`, caps: { cursors: names % 2 === 0 } },
});

describe(`ENV26 ENV21 ENV6 ENV9 ENV15 ENV17: seed ${seed}, ${limits.numRuns} samples each`, () => {
  test('before hello: anything but a hello is turned away, and nothing else happens', () =>
    fc.assert(
      fc.asyncProperty(fc.array(anySent, { minLength: 1, maxLength: 6 }), async (sent) => {
        const tenant = await world.tenant();
        const { frames, faults, closed } = await talk(world.edges[0]!.links.dial('/ws'), world.patience, { sent, within_ms });
        expect(closed).toBeDefined();
        await unharmed([...faults, ...(frames.some(({ type }) => type !== 'error') ? ['it was told something'] : [])], sent);
        expect(world.backbone.logs.get(tenant.tenant_id)).toBeUndefined();
      }),
      limits,
    ));

  test('after hello: every request is answered exactly once, and the connection of another device sees nothing wrong', () =>
    fc.assert(
      fc.asyncProperty(fc.array(sentBy('device-up'), { minLength: 1, maxLength: 14 }), async (sent) => {
        const tenant = await world.tenant();
        const other = await tenant.join('witness', { edge: 1 });
        const ids = await something(tenant, other);
        const real = sent.map((one) =>
          one.kind === 'text' ? { ...one, text: one.text.replace(/m_known|m_run|pk_known/g, (name) => ids[name]!) } : one,
        );
        const { faults } = await talk(world.edges[0]!.links.dial('/ws'), world.patience, {
          first: helloOf(tenant.device_token),
          sent: real,
          within_ms,
        });
        const alive = await other.send('still here');
        await unharmed([...faults, ...other.faults, ...(alive.type === 'message' ? [] : [`then: ${JSON.stringify(alive)}`])], real);
        other.close();
      }),
      limits,
    ));

  test('the agent link: nothing an agent says reaches a device in a wrong shape', () =>
    fc.assert(
      fc.asyncProperty(fc.array(sentBy('agent-up'), { minLength: 1, maxLength: 14 }), async (sent) => {
        const tenant = await world.tenant();
        const device = await tenant.join('witness', { edge: 1 });
        const agent = tenant.agent({ edge: 0 });
        await agent.connect();
        await device.send('question');
        const turn = await agent.turn();
        let seq = agent.unacked.at(-1)?.seq ?? 1;
        const real = sent.map((one): Sent => {
          if (one.kind !== 'text') return one;
          // In their turn and their place, as far as what is wrong with them leaves one.
          const text = one.text
            .replaceAll(/"tn_5"|"tn_known"/g, JSON.stringify(turn.turn_id))
            .replace(/^\{"seq":\d+/, () => `{"seq":${++seq}`);
          return { ...one, text };
        });
        for (const one of real) agent.raw(one.kind === 'text' ? one.text : one.bytes.toString());
        await world.advance(500);
        const alive = await device.request('ping', { ts: 1 }, { within_ms });
        const internal = agent.received.all
          .filter(({ type, payload }) => type === 'error' && payload.code === 'internal')
          .map((frame) => JSON.stringify(frame));
        await unharmed([...device.faults, ...internal, ...(alive.type === 'pong' ? [] : ['no pong'])], real);
        device.close();
        agent.cut();
      }),
      limits,
    ));
});
