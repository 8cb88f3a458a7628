import type { Quotas } from '@iris/protocol';
import { lane, makeWorld, type TestDevice, type World } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const generous: Partial<Quotas> = {
  sends_burst: 10_000,
  tenant_sends_burst: 10_000,
  frames_burst: 10_000,
  waiting_per_lane: 10_000,
};

/** One session instance that can have little under way, on a store that takes its time. */
async function play(run: (world: World) => Promise<void>, session_config: Record<string, unknown>): Promise<void> {
  const world = await makeWorld({ sessions: 1, session_config });
  try {
    await run(world);
  } finally {
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  }
}

/** A tenant whose devices have asked for more than can be done. */
async function busy(world: World, name: string, weight: number, what: 'sends' | 'reads') {
  const tenant = await world.tenant({ ...generous, weight });
  const devices = await Promise.all(Array.from({ length: 20 }, (_, n) => tenant.join(`${name} ${n}`, { edge: 0 })));
  const patient = { within_ms: 10 ** 9 };
  let done = 0;
  return {
    tenant,
    device: devices[0]!,
    done: () => done,
    asked: 20 * 15,
    begin() {
      for (const device of devices)
        for (let n = 0; n < 15; n++)
          (what === 'sends' ? device.send(`${n}`, patient) : device.request('history', {}, { ...lane, ...patient })).then(
            ({ type }) => void (type === 'error' || done++),
            () => {},
          );
    },
  };
}

/** Says something, and tells how long the answer took. */
const sendTime = (world: World, device: TestDevice) => async () => {
  const at = world.time.now();
  expect((await device.send('now')).type).toBe('message');
  return world.time.now() - at;
};

describe('LIM16: tenants on one instance', () => {
  test.each([
    ['sends', { requests_at_once: 16 }],
    ['reads', { reads_at_once: 4 }],
  ] as const)('%s: shares go by weight, at full speed of all', (what, config) =>
    play(async (world) => {
      const tenants = [await busy(world, 'one', 10, what), await busy(world, 'two', 20, what), await busy(world, 'five', 50, what)];
      world.backbone.faults = { ...world.backbone.faults, store_ms: [40, 40] };
      for (const one of tenants) one.begin();
      // Until all wait: the places that were free went to whoever came first.
      await world.advance(1_000);
      const before = tenants.map(({ done }) => done());
      await world.advance(5_000);
      const [one, two, five] = tenants.map(({ done }, n) => done() - before[n]!) as [number, number, number];
      expect(one).toBeGreaterThanOrEqual(15);
      expect(tenants[2]!.done()).toBeLessThan(tenants[2]!.asked);
      expect(two / one).toBeGreaterThan(1.6);
      expect(two / one).toBeLessThan(2.5);
      expect(five / one).toBeGreaterThan(4);
      expect(five / one).toBeLessThan(6.2);
    }, config),
  );

  test('who asks seldom does not wait for who asks always: the same time as alone', () =>
    play(
      async (world) => {
        const [loud, quiet] = [await busy(world, 'loud', 10, 'sends'), await busy(world, 'quiet', 10, 'sends')];
        world.backbone.faults = { ...world.backbone.faults, store_ms: [40, 40] };
        const timed = sendTime(world, quiet.device);
        await timed();
        const alone = await timed();
        loud.begin();
        await world.advance(200);
        const beside = [await timed(), await timed(), await timed()];
        expect(loud.done()).toBeLessThan(loud.asked);
        expect(Math.max(...beside)).toBeLessThanOrEqual(alone * 1.2);
      },
      { requests_at_once: 16 },
    ));

  test('hellos in the name of a tenant, true or not, take nothing from those who are in', () =>
    play(
      async (world) => {
        const quiet = await busy(world, 'quiet', 10, 'sends');
        world.backbone.faults = { ...world.backbone.faults, store_ms: [40, 40] };
        const timed = sendTime(world, quiet.device);
        await timed();
        const alone = await timed();
        for (let n = 0; n < 60; n++) {
          const guest = quiet.tenant.device(`guest ${n}`, { edge: 1, address: `10.9.0.${n}` });
          await guest.connect();
          void guest.hello({}, { within_ms: 10 ** 9 }).catch(() => {});
        }
        expect(await timed()).toBeLessThanOrEqual(alone * 2);
      },
      { requests_at_once: 4, hellos_at_once: 2 },
    ));
});
