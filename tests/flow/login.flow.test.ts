import { type Control, subjects } from '@iris/bus';
import { makeToken, type TenantId, type TokenId } from '@iris/protocol';
import { tokenHash } from '@iris/store';
import { lane, makeWorld, onStage, type TestDevice, type World, type WorldTenant } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

/** What the admin API says to everyone, after the store has it (apps/control/src/api.test.ts holds that order). */
function operator(world: World) {
  const { bus } = world.backbone.join('control', 'net');
  return (order: Control) => bus.publish(subjects.control, new TextEncoder().encode(JSON.stringify(order)));
}

async function deviceToken(world: World, tenant_id: TenantId, token_id: string, expires_at: number | null = null) {
  const token = makeToken('device', tenant_id, `secret-of-${token_id}`.padEnd(32, '0'));
  const row = {
    tenant_id,
    token_id: token_id as TokenId,
    kind: 'device',
    hash: tokenHash(token),
    device_id: null,
    agent_id: null,
  } as const;
  await world.store.tokens.create({ ...row, created_at: world.time.now(), expires_at });
  return token;
}

describe('C133 HEL15: revocation', () => {
  test('closes what the token opened within a second, on every edge, in the midst of a stream and an upload; others stay', () =>
    onStage(
      async ({ world, tenant, agent, a }) => {
        const { tenant_id } = tenant;
        const say = operator(world);
        const [stolen, kept] = [await deviceToken(world, tenant_id, 'stolen'), await deviceToken(world, tenant_id, 'kept')];
        const join = async (name: string, token: string, edge: number) => {
          const device = tenant.device(name, { edge, token });
          expect((await device.join()).type).toBe('hello.ack');
          return device;
        };
        const thieves = [await join('thief 1', stolen, 0), await join('thief 2', stolen, 1)];
        const owner = await join('owner', kept, 1);
        const stranger = await (await world.tenant()).join('stranger', { edge: 0 });
        await a.send('tell me');
        const turn = await agent.turn();
        turn.start();
        turn.delta('once upon a time ');
        await thieves[0]!.next('message.update');
        thieves[1]!.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'text/plain', size: 100_000, filename: 'a.txt' });
        thieves[1]!.raw(new Uint8Array(1_000));
        await world.settle();

        await world.store.tokens.revoke(tenant_id, 'stolen' as TokenId, world.time.now());
        say({ kind: 'revoked', tenant_id, token_id: 'stolen' });
        const at = world.time.now();
        for (const thief of thieves) expect((await thief.closed()).code).toBe(4403);
        expect(world.time.now() - at).toBeLessThan(1_000);
        const heard = thieves.map((thief) => thief.received.all.length);
        turn.delta('there was an end');
        turn.stop();
        turn.end();
        await owner.next('agent.idle');
        expect(thieves.map((thief) => thief.received.all.length)).toEqual(heard);
        for (const device of [a, owner, stranger]) expect(device.connected).toBe(true);
        // Nor does it open anything again.
        const back = await thieves[0]!.join();
        expect(back).toMatchObject({ type: 'error', payload: { code: 'auth' } });
      },
      { unchecked: true, expected: ['*'] },
    ));

  test('of an agent’s token closes its links; of a device that device; a suspended tenant loses everything; other tenants nothing', () =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        const { tenant_id } = tenant;
        const say = operator(world);
        const other = await world.tenant();
        const stranger = await other.join('phone', { edge: 0 });
        const otherAgent = other.agent();
        await otherAgent.connect();
        say({ kind: 'revoked', tenant_id, token_id: 'agent-token' });
        expect((await agent.closed({ within_ms: 1_000 })).code).toBe(4403);
        expect([a.connected, b.connected]).toEqual([true, true]);
        say({ kind: 'revoked', tenant_id, device_id: 'tablet' as never });
        expect((await b.closed({ within_ms: 1_000 })).code).toBe(4403);
        expect(a.connected).toBe(true);
        await world.store.tenants.setState(tenant_id, 'suspended');
        say({ kind: 'changed', tenant_id, what: 'tenant' });
        say({ kind: 'revoked', tenant_id });
        expect((await a.closed({ within_ms: 1_000 })).code).toBe(4403);
        expect(await a.join()).toMatchObject({ type: 'error', payload: { code: 'auth' } });
        expect([stranger.connected, otherAgent.connected]).toEqual([true, true]);
        await world.store.tenants.setState(tenant_id, 'active');
        say({ kind: 'changed', tenant_id, what: 'tenant' });
        await world.settle();
        expect((await a.join()).type).toBe('hello.ack');
      },
      { unchecked: true, expected: ['*'] },
    ));

  test('rotation with overlap closes nothing: the old token opens until its end, and what it has opened stays open', () =>
    onStage(
      async ({ world, tenant }) => {
        const { tenant_id } = tenant;
        const say = operator(world);
        const old = await deviceToken(world, tenant_id, 'old');
        const device = tenant.device('phone 2', { token: old });
        expect((await device.join()).type).toBe('hello.ack');
        const fresh = await deviceToken(world, tenant_id, 'fresh');
        await world.store.tokens.expire(tenant_id, 'old' as TokenId, world.time.now() + 5_000);
        say({ kind: 'changed', tenant_id, what: 'tokens' });
        await world.advance(1_000);
        expect((await tenant.device('phone 3', { token: old }).join()).type).toBe('hello.ack');
        await world.advance(5_000);
        expect(device.connected).toBe(true);
        expect((await device.request('ping', { ts: 1 })).type).toBe('pong');
        const answers = [await tenant.device('phone 4', { token: old }).join(), await tenant.device('phone 4', { token: fresh }).join()];
        expect(answers.map(({ type }) => type)).toEqual(['error', 'hello.ack']);
      },
      { unchecked: true, expected: ['*'] },
    ));
});

describe('C126 LIM8: guessing', () => {
  test('5,000 from 50 sockets of one address: limited within 20 tries; from 500 addresses: others still get in at once', async () => {
    const world = await makeWorld();
    const tenant = await world.tenant();
    const mine = await tenant.join('mine', { edge: 0 });
    let tried = 0;
    world.backbone.onCall = ({ name }) => {
      if (name === 'tokens.find') tried++;
    };
    const guess = async (n: number, address: string) => {
      const token = makeToken('device', tenant.tenant_id, `guess${n}`.padEnd(32, 'x'));
      const device = tenant.device(`g${n}`, { edge: n % 2, token, address });
      try {
        await device.connect();
        return (await device.hello()).payload.code;
      } catch {
        return 'closed';
      }
    };
    const ofOne: (string | undefined)[] = [];
    const began = world.time.now();
    for (let round = 0; round < 100; round++)
      ofOne.push(...(await Promise.all(Array.from({ length: 50 }, (_, n) => guess(round * 50 + n, '10.66.0.1')))));
    // However many edges they come by: it was less than half a minute.
    const most = 20 + Math.ceil((world.time.now() - began) / 6_000);
    expect(ofOne.filter((code) => code === 'auth').length).toBeLessThanOrEqual(most);
    expect(tried).toBeLessThanOrEqual(most);
    expect(tried).toBeGreaterThanOrEqual(20);
    expect(ofOne.filter((code) => code === undefined)).toEqual([]);
    const many = Promise.all(Array.from({ length: 500 }, (_, n) => guess(2_000 + n, `10.${n >> 8}.${n & 255}.7`)));
    const at = world.time.now();
    expect((await tenant.device('late', { edge: 0, address: '10.200.0.1' }).join()).type).toBe('hello.ack');
    expect(world.time.now() - at).toBeLessThan(1_000);
    expect((await many).filter((code) => code !== 'auth')).toEqual([]);
    expect((await mine.request('ping', { ts: 1 })).type).toBe('pong');
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  });
});

describe('LIM8: guessing through two edges', () => {
  const guesses = async (tenant: WorldTenant, count: number) => {
    const codes = await Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const device = tenant.device(`g${n}`, {
          edge: n % 2,
          token: makeToken('device', tenant.tenant_id, `guess${n}`.padEnd(32, 'x')),
          address: '10.66.0.1',
        });
        await device.connect();
        return (await device.hello()).payload.code;
      }),
    );
    return codes.filter((code) => code === 'auth').length;
  };
  const on = async (run: (world: World, tenant: WorldTenant) => Promise<void>) => {
    const world = await makeWorld();
    await run(world, await world.tenant());
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  };

  test('while Redis is away each edge holds its own bucket, and no more', () =>
    on(async (world, tenant) => {
      world.backbone.outbox.setConnected(false);
      const tried = await guesses(tenant, 200);
      expect(tried).toBeGreaterThan(20);
      expect(tried).toBeLessThanOrEqual(2 * 21);
    }));

  test('many who are in the right behind one address get in through both, at once', () =>
    on(async (world, tenant) => {
      const at = world.time.now();
      const types = await Promise.all(
        Array.from(
          { length: 100 },
          async (_, n) =>
            (
              await tenant
                .device(`d${n}`, { edge: n % 2, address: '10.66.0.1', token: await deviceToken(world, tenant.tenant_id, `k${n}x`) })
                .join()
            ).type,
        ),
      );
      expect(types.filter((type) => type === 'hello.ack')).toHaveLength(100);
      expect(world.time.now() - at).toBeLessThan(2_000);
    }));
});

test('C129 HEL3: what is said before hello has no effect, and the socket is closed after the first', () =>
  onStage(
    async ({ world, tenant, a }) => {
      const log = tenant.log.length;
      const device = tenant.device('early', { edge: 1 });
      const said = [
        ['message.send', { text: 'x' }, lane],
        ['sync', {}, {}],
        ['ping', { ts: 1 }, {}],
        ['channel.create', { name: 'x' }, {}],
      ] as const;
      for (const [type, payload, scope] of said) {
        await device.connect();
        expect(await device.request(type, payload, scope)).toMatchObject({ type: 'error', payload: { code: 'auth' } });
        expect((await device.closed()).code).toBe(4401);
      }
      await device.connect();
      device.raw(new Uint8Array([1, 2, 3]));
      expect((await device.closed()).code).toBe(4401);
      await world.advance(1_000);
      expect(tenant.log).toHaveLength(log);
      expect((await a.history(lane)).payload.messages).toEqual([]);
    },
    { unchecked: true },
  ));

/** `IRIS_CUTS=50000` cuts that often. */
const cutsInAll = Number(process.env.IRIS_CUTS ?? 300);

describe('resources', () => {
  test('C135: sockets that are cut at random while the backend is slow leave nothing behind, and break nothing', () =>
    onStage(
      async ({ world, tenant, a }) => {
        const dice = world.chance.fork('cuts');
        world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 2_000], outbox_ms: [0, 200] };
        const cuts: Promise<unknown>[] = [];
        for (let n = 0; n < cutsInAll; n++) {
          const device = tenant.device(`d${n % 40}`, { edge: n % 2, address: `10.${1 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}` });
          const live = async (one: TestDevice) => {
            await one.connect();
            void one.hello({}, { within_ms: 60_000 }).catch(() => {});
            void one.request('history', {}, { ...lane, within_ms: 60_000 }).catch(() => {});
          };
          cuts.push(live(device));
          await world.advance(dice.between(0, 30));
          device.cut({ silent: dice.happens(0.2) });
        }
        await Promise.all(cuts);
        world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 0], outbox_ms: [0, 0] };
        await world.advance(60_000);
        expect(world.events.all.filter(({ level }) => level === 'error')).toEqual([]);
        for (const edge of world.edges) expect(edge.stats()).toMatchObject({ greeting: 0, in_flight: 0 });
        expect(world.edges.reduce((sum, edge) => sum + edge.stats().known, 0)).toBeLessThanOrEqual(3);
        expect((await a.request('ping', { ts: 1 })).type).toBe('pong');
      },
      { unchecked: true, expected: ['*'] },
    ));

  test('C138 KEE4: pinging, app pings, and answering pings each keep a socket for ten minutes; who answers nothing is gone in 25 s', () =>
    onStage(
      async ({ world, tenant }) => {
        const [pinging, app, answering, dead] = await Promise.all(
          ['pinging', 'app', 'answering', 'dead'].map((name) => tenant.join(name, { edge: 0 })),
        );
        for (const mute of [pinging!, app!, dead!]) mute.autoPong(false);
        const at = world.time.now();
        let gone: number | undefined;
        void dead!.closed({ within_ms: 10 ** 9 }).then(() => {
          gone = world.time.now() - at;
        });
        for (let ms = 0; ms < 600_000; ms += 10_000) {
          pinging!.ping();
          app!.say('ping', { ts: ms });
          await world.advance(10_000);
        }
        expect(gone).toBeLessThanOrEqual(25_000);
        expect([pinging!.connected, app!.connected, answering!.connected]).toEqual([true, true, true]);
      },
      { unchecked: true, agent: false },
    ));
});
