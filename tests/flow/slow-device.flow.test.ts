import { onStage, type TestDevice, type World } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

/** A phone’s link: what the window holds is read once per round trip; one in a hundred is lost, and comes two round trips later. */
function phone(world: World, devices: readonly TestDevice[], rtt_ms: number) {
  const dice = world.chance.fork('phone');
  const stalled = new Map<TestDevice, number>();
  for (const device of devices) device.pause();
  return async (ms: number) => {
    for (let passed = 0; passed < ms; passed += rtt_ms) {
      await world.advance(rtt_ms);
      for (const device of devices) {
        const left = (stalled.get(device) ?? 0) - 1;
        stalled.set(device, left);
        if (left >= 0) continue;
        if (dice.happens(0.01)) {
          stalled.set(device, 2);
          continue;
        }
        device.resume();
        await world.settle();
        device.pause();
      }
    }
  };
}

const shownText = (device: TestDevice, message_id: string): string => {
  let text = '';
  for (const { type, payload } of device.frames(['message.update', 'message.delta', 'message.stop'])) {
    if (payload.message_id !== message_id) continue;
    if (type === 'message.delta') text += payload.offset === text.length ? payload.text! : '';
    else text = payload.text ?? payload.final_text!;
  }
  return text;
};

test.each([
  ['whole texts', {}],
  ['pieces', { delta: true }],
])(
  'C45 STR4 OUT9: 128 kbit/s, 300 ms, 1 %% loss, with %s: stays connected, is at most 3 s behind, and gets every end',
  (_, caps) =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        const slow = await tenant.join('phone-far-away', { edge: 1, caps });
        const pass = phone(world, [slow], 300);
        await a.send('question');
        const turn = await agent.turn();
        const finals: string[] = [];
        let worst = 0;
        const rounds = 20;
        // Ten minutes: twenty answers of half a minute, in words, with a tool now and then.
        for (let round = 0; round < rounds; round++) {
          const own = turn.start();
          const id = (await b.next('message.start')).payload.message_id!;
          const history: { at: number; length: number }[] = [];
          for (let i = 0; i < 100; i++) {
            for (let word = 0; word < 3; word++) turn.delta(`word${i}.${word} of answer ${round} `, own);
            history.push({ at: world.time.now(), length: turn.running.get(own)!.text.length });
            if (i % 25 === 10) {
              turn.toolStart(round * 100 + i, 'terminal', { preview: 'ls' });
              turn.toolEnd(round * 100 + i, { output_preview: 'nothing' });
            }
            await pass(300);
            const shown = shownText(slow, id).length;
            const behind = history.find(({ length }) => length > shown);
            if (behind !== undefined) worst = Math.max(worst, world.time.now() - behind.at);
          }
          finals.push(turn.running.get(own)!.text);
          turn.stop({ message_id: own });
        }
        turn.end();
        await pass(6_000);
        expect(worst).toBeLessThanOrEqual(3_300);
        expect(slow.connections).toHaveLength(1);
        expect(slow.connected).toBe(true);
        expect(slow.frames('message.stop').map(({ payload }) => payload.final_text)).toEqual(finals);
        expect(slow.frames(['tool.start', 'tool.end'])).toHaveLength(2 * 4 * rounds);
        expect(slow.frames('agent.idle')).toHaveLength(1);
        slow.resume();
      },
      // What 128 kbit/s carry in a round trip.
      { window_bytes: 4_800 },
    ),
  120_000,
);

describe('C46: one device that does not read', () => {
  test(
    'costs the ninety-nine others nothing: what they are shown comes as soon as without it; it is closed within 30 s',
    () =>
      onStage(
        async ({ world, tenant, agent, a, b }) => {
          const others = [b];
          for (let i = 0; i < 98; i++) others.push(await tenant.join(`d${i}`, { edge: 1 }));
          const stuck = await tenant.join('stuck', { edge: 1 });
          world.backbone.faults = { ...world.backbone.faults, socket_ms: [5, 5], bus_ms: [2, 2] };
          await a.send('go');
          const turn = await agent.turn();
          const latency = async (rounds: number) => {
            const all: number[] = [];
            for (let i = 0; i < rounds; i++) {
              const text = `${world.time.now()} ${'x'.repeat(2_000)}`;
              const start = world.time.now();
              turn.message(text);
              for (const device of others) await device.next((frame) => frame.payload.text === text);
              for (const device of others) all.push(device.received.all.findLast(({ frame }) => frame.payload.text === text)!.at - start);
              await world.advance(20);
            }
            return all.sort((x, y) => x - y)[Math.floor(all.length * 0.99)]!;
          };
          const before = await latency(40);
          stuck.pause();
          const since = world.time.now();
          const during = await latency(200);
          expect(during).toBeLessThanOrEqual(before * 1.2);
          while (stuck.connected && world.time.now() - since < 30_000) await world.advance(500);
          expect(stuck.connected).toBe(false);
          const after = await latency(20);
          expect(after).toBeLessThanOrEqual(before * 1.2);
          turn.end();
          await b.next('agent.idle');
          for (const device of others) expect(device.connections).toHaveLength(1);
          // And it comes back to everything.
          stuck.resume();
          await stuck.join();
          await stuck.sync();
          const said = stuck.frames((frame) => frame.payload.role === 'assistant').map(({ payload }) => payload.text);
          expect(new Set(said).size).toBe(260);
        },
        { window_bytes: 64 * 1024 },
      ),
    120_000,
  );
});
