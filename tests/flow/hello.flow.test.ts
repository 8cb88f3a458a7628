import { type Control, subjects } from '@iris/bus';
import { type DeviceId, makeToken, type TenantId, type TokenId } from '@iris/protocol';
import { tokenHash } from '@iris/store';
import { makeWorld, onStage, type World } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const alone = async () => {
  const world = await makeWorld();
  return { world, tenant: await world.tenant() };
};
/** As another process would say it to all. */
const say = (world: World, control: Control) => {
  const { bus } = world.backbone.join('control', 'worker');
  bus.publish(subjects.control, new TextEncoder().encode(JSON.stringify(control)));
};

describe('the first frame', () => {
  test('HEL2 CLS4: without a hello the socket is closed with 4408 after 10 s', async () => {
    const { world, tenant } = await alone();
    const device = tenant.device('phone');
    await device.connect();
    const start = world.time.now();
    await world.advance(9_000);
    expect(device.connected).toBe(true);
    expect((await device.closed()).code).toBe(4408);
    expect(world.time.now() - start).toBeLessThan(11_000);
  });

  test.each([
    ['ping', { type: 'ping', id: 7, payload: {} }],
    ['message.send', { type: 'message.send', id: 'x', payload: { text: 'before hello' } }],
    ['sync', { type: 'sync', id: 9, payload: { cursor: 0 } }],
  ])('HEL3 CLS2: %s first is answered error auth with its id, and closed with 4401', async (_, frame) => {
    const { tenant } = await alone();
    const device = tenant.device('phone');
    await device.connect();
    device.raw(JSON.stringify(frame));
    expect((await device.closed()).code).toBe(4401);
    const [error, ...more] = device.frames();
    expect(error).toMatchObject({ type: 'error', id: frame.id, payload: { code: 'auth' } });
    expect(more).toEqual([]);
    expect(tenant.log).toEqual([]);
  });

  test('HEL3: a binary frame first', async () => {
    const { tenant } = await alone();
    const device = tenant.device('phone');
    await device.connect();
    device.raw(new Uint8Array([1, 2, 3]));
    expect((await device.closed()).code).toBe(4401);
    expect(device.frames('error')).toMatchObject([{ payload: { code: 'auth' } }]);
  });

  test('HEL5 HEL6: a wrong token, one of no tenant, and one of no shape all look the same', async () => {
    const { tenant } = await alone();
    const answers = [];
    for (const token of [
      makeToken('device', tenant.tenant_id, 'a-secret-that-nobody-was-ever-given'),
      makeToken('device', 'tenant-of-nobody' as TenantId, 'a-secret-that-nobody-was-ever-given'),
      'no token of ours',
      tenant.agent_token,
    ]) {
      const device = tenant.device('phone', { token });
      await device.connect();
      answers.push(await device.hello());
      expect((await device.closed()).code).toBe(4401);
    }
    expect(answers[0]).toMatchObject({ type: 'error', payload: { code: 'auth' } });
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  test('HEL5: a revoked token', async () => {
    const { world, tenant } = await alone();
    await world.store.tokens.revoke(tenant.tenant_id, 'device-token' as TokenId, world.time.now());
    const device = tenant.device('phone');
    await device.connect();
    expect(await device.hello()).toMatchObject({ type: 'error', payload: { code: 'auth' } });
    expect((await device.closed()).code).toBe(4401);
  });

  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['too long', 'x'.repeat(129)],
    ['no string', 7],
  ])('HEL8: a device_id that is %s', async (_, device_id) => {
    const { tenant } = await alone();
    const device = tenant.device('phone');
    await device.connect();
    device.raw(JSON.stringify({ type: 'hello', id: 1, payload: { token: tenant.device_token, device_id } }));
    expect((await device.closed()).code).toBe(4401);
    expect(device.frames()).toMatchObject([{ type: 'error', payload: { code: 'auth' } }]);
  });

  test('HEL8: 128 characters are not too long, whatever they are', async () => {
    const { tenant } = await alone();
    for (const device_id of ['x'.repeat(128), '__proto__', 'constructor', 'ключ 🔑', ' ', '*.>']) {
      expect(await tenant.device(device_id).join()).toMatchObject({ type: 'hello.ack' });
    }
  });

  test('HEL9: another protocol only', async () => {
    const { tenant } = await alone();
    const device = tenant.device('phone', { caps: { min_protocol: 2 } });
    await device.connect();
    expect(await device.hello()).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
    expect((await device.closed()).code).toBe(4400);
  });

  test('HEL10: caps of the wrong type or from the future do not keep a device out', async () => {
    const { tenant } = await alone();
    for (const caps of [{ cursors: 'yes', delta: 7, teleport: true, push: ['fcm'], min_protocol: 'one' }, 'all of them', null, [1]]) {
      const device = tenant.device('phone');
      await device.connect();
      device.raw(JSON.stringify({ type: 'hello', payload: { token: tenant.device_token, device_id: 'phone', caps } }));
      expect(await device.next(['hello.ack', 'error'])).toMatchObject({ type: 'hello.ack' });
      await device.send('hello');
      expect(device.frames('message').at(-1)).not.toHaveProperty('cursor');
    }
  });

  test('ENV2 CLS1: another major version before hello closes with 4400', async () => {
    const { tenant } = await alone();
    const device = tenant.device('phone');
    await device.connect();
    device.raw(JSON.stringify({ v: 2, type: 'hello', id: 1, payload: { token: tenant.device_token, device_id: 'phone' } }));
    expect((await device.closed()).code).toBe(4400);
    expect(device.frames()).toMatchObject([{ type: 'error', id: 1, payload: { code: 'unsupported' } }]);
  });

  test('LIM8: failed hellos of one address are limited, and do not stop others', async () => {
    const { world, tenant } = await alone();
    let limited = 0;
    let first = 0;
    const start = world.time.now();
    for (let i = 0; i < 40; i++) {
      const device = tenant.device('guesser', {
        token: makeToken('device', tenant.tenant_id, `guess-number-${i}-of-a-secret`),
        address: '10.0.0.9',
      });
      await device.connect();
      const answer = await device.hello();
      if (answer.payload.code === 'rate_limited') {
        limited++;
        first ||= i;
        expect(answer.payload.retry_after_ms).toBeGreaterThanOrEqual(1);
      } else expect(answer.payload.code).toBe('auth');
      await device.closed();
    }
    const more = Math.ceil((world.time.now() - start) / 6_000);
    expect(first).toBeLessThanOrEqual(20 + more);
    expect(limited).toBeGreaterThanOrEqual(20 - more);
    expect(more).toBeLessThan(3);
    expect((await tenant.device('phone', { address: '10.0.0.10' }).join()).type).toBe('hello.ack');
  });
});

describe('hello.ack and what follows', () => {
  test('HEL4 HEL16 HEL17 HEL18 HEL19 HEL20 CHA1: a new device of a new tenant', async () => {
    const { world, tenant } = await alone();
    const device = tenant.device('phone');
    const ack = await device.join();
    expect(ack.payload).toMatchObject({
      server_caps: { streaming: true, push: 'none' },
      sync_cursor: 0,
      last_pushed_cursor: 0,
      channels: [{ chat_id: 'android:default', kind: 'default', is_default: true }],
    });
    await world.settle();
    expect(device.frames().map(({ type }) => type)).toEqual(['hello.ack', 'status']);
  });

  test('HEL4: a hello with an id is answered with it', async () => {
    const { tenant } = await alone();
    const device = tenant.device('phone');
    await device.connect();
    const answer = await device.request('hello', { token: tenant.device_token, device_id: 'phone' }, { id: 'first' });
    expect(answer).toMatchObject({ type: 'hello.ack', id: 'first' });
  });

  test('HEL21 HEL26: status online follows at once', async () => {
    const { tenant } = await alone();
    const device = await tenant.join('phone');
    expect(await device.next('status')).toMatchObject({ payload: { state: 'online' } });
    expect(device.frames()[1]).toMatchObject({ type: 'status' });
  });

  test('HEL19: a new device starts at the head, a known one at its watermark', () =>
    onStage(async ({ world, tenant, b }) => {
      await b.send('one');
      const fresh = await tenant.join('desk');
      expect(fresh.connections.at(-1)?.ack?.payload.sync_cursor).toBe(tenant.log.at(-1)?.cursor);
      fresh.autoPong(false);
      await world.advance(6_000);
      await b.send('two');
      await world.advance(6_000);
      fresh.cut();
      await fresh.join();
      expect(fresh.connections.at(-1)?.ack?.payload.sync_cursor).toBe(tenant.log.at(-2)?.cursor);
    }));

  test('HEL11: a second hello is refused and changes nothing', () =>
    onStage(async ({ a, tenant }) => {
      expect(await a.request('hello', { token: tenant.device_token, device_id: 'other' })).toMatchObject({
        type: 'error',
        payload: { code: 'unsupported' },
      });
      expect(await a.send('still here')).toMatchObject({ type: 'message' });
    }));

  test.each([[0], [1]])('HEL12 CLS5: the same device again, on edge %i: the newer connection wins, the older gets 4409', (edge) =>
    onStage(async ({ tenant, a, b }) => {
      const again = await tenant.join('phone', { edge, caps: { cursors: true } });
      expect((await a.closed()).code).toBe(4409);
      await b.send('for the newer one');
      expect(await again.next('message')).toMatchObject({ payload: { text: 'for the newer one' } });
      expect(a.frames('message')).toEqual([]);
    }),
  );

  test('HEL13 LIM10: over the quota of devices hello is rate_limited; known devices still come in', async () => {
    const world = await makeWorld();
    const tenant = await world.tenant({ devices: 2 });
    await tenant.join('one');
    const two = await tenant.join('two');
    const three = tenant.device('three');
    await three.connect();
    const answer = await three.hello();
    expect(answer).toMatchObject({ type: 'error', payload: { code: 'rate_limited' } });
    expect(answer.payload.retry_after_ms).toBeGreaterThanOrEqual(1);
    two.cut();
    expect((await two.join()).type).toBe('hello.ack');
  });

  test('HEL14: a paired token opens its own device only', async () => {
    const { world, tenant } = await alone();
    const token = makeToken('device', tenant.tenant_id, 'the-secret-of-the-paired-device-1');
    await world.store.tokens.create({
      tenant_id: tenant.tenant_id,
      token_id: 'paired' as TokenId,
      kind: 'device',
      hash: tokenHash(token),
      device_id: 'phone' as DeviceId,
      agent_id: null,
      created_at: 1,
    });
    const other = tenant.device('tablet', { token });
    await other.connect();
    expect(await other.hello()).toMatchObject({ type: 'error', payload: { code: 'auth' } });
    expect((await other.closed()).code).toBe(4401);
    expect((await tenant.device('phone', { token }).join()).type).toBe('hello.ack');
  });

  test('HEL15 CLS3: revoking a token closes its sockets on every edge with 4403 within a second, others stay', () =>
    onStage(async ({ world, tenant, a, b }) => {
      const token = makeToken('device', tenant.tenant_id, 'the-secret-of-the-other-token-22');
      const row = { tenant_id: tenant.tenant_id, kind: 'device', hash: tokenHash(token), device_id: null, agent_id: null } as const;
      await world.store.tokens.create({ ...row, token_id: 'other' as TokenId, created_at: 1 });
      const others = [tenant.device('x', { token, edge: 0 }), tenant.device('y', { token, edge: 1 })];
      for (const other of others) await other.join();
      const start = world.time.now();
      await world.store.tokens.revoke(tenant.tenant_id, 'other' as TokenId, start);
      say(world, { kind: 'revoked', tenant_id: tenant.tenant_id, token_id: 'other' });
      for (const other of others) expect((await other.closed()).code).toBe(4403);
      expect(world.time.now() - start).toBeLessThan(1_000);
      await a.send('still here');
      expect((await b.next('message')).payload.text).toBe('still here');
    }));

  test('HEL15: revoking a device closes it wherever it is', () =>
    onStage(async ({ world, tenant, a, b }) => {
      await world.store.devices.revoke(tenant.tenant_id, 'tablet' as DeviceId, world.time.now());
      say(world, { kind: 'revoked', tenant_id: tenant.tenant_id, device_id: 'tablet' as DeviceId });
      expect((await b.closed()).code).toBe(4403);
      await b.connect();
      expect(await b.hello()).toMatchObject({ type: 'error', payload: { code: 'auth' } });
      await a.send('not for the revoked');
      expect(b.frames('message')).toEqual([]);
    }));

  test('HEL22 HEL24 HEL25: a device joins in mid-answer, on the other edge, and goes on live from there', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      await a.send('tell me');
      const turn = await agent.turn();
      turn.start();
      turn.delta('Once upon ');
      await a.next('message.update');
      const late = await tenant.join('desk', { edge: 1 });
      await world.settle();
      expect(late.frames().map(({ type }) => type)).toEqual(['hello.ack', 'status', 'agent.busy', 'message.start', 'message.update']);
      expect(late.frames('message.update')[0]?.payload.text).toBe('Once upon ');
      late.received.skip();
      turn.delta('a time.');
      expect((await late.next('message.update')).payload.text).toBe('Once upon a time.');
      turn.stop();
      turn.end();
      expect((await late.next('message.stop')).payload.final_text).toBe('Once upon a time.');
      await late.next('agent.idle');
      expect(late.frames('message.start')).toHaveLength(1);
    }));

  test('HEL30: without sync a device gets what comes after the head, and nothing from before', () =>
    onStage(
      async ({ world, a, b }) => {
        b.cut();
        await a.send('while away');
        await b.join();
        await world.advance(3_000);
        await a.send('after');
        expect((await b.next('message')).payload.text).toBe('after');
        expect(b.frames('message')).toHaveLength(1);
      },
      { unchecked: true },
    ));
});

describe('an edge that goes', () => {
  test('HEL28 CLS9: one of two drains with 1012 and without a status; its devices come back elsewhere', () =>
    onStage(async ({ world, a, b }) => {
      const stopping = world.edges[1]!.stop();
      expect((await b.closed({ within_ms: 60_000 })).code).toBe(1012);
      await stopping;
      expect(b.frames('status')).toMatchObject([{ payload: { state: 'online' } }]);
      await b.join(world.edges[0]!.links.dial('/ws'));
      await a.send('still served');
      expect((await b.next('message')).payload.text).toBe('still served');
    }));

  test('HEL27: where both of two go at once, no other is there, and both say status restarting', () =>
    onStage(
      async ({ world, a, b }) => {
        const stopping = world.edges.map((edge) => edge.stop());
        for (const device of [a, b]) expect((await device.closed({ within_ms: 60_000 })).code).toBe(1012);
        await Promise.all(stopping);
        for (const device of [a, b]) expect(device.frames('status').map(({ payload }) => payload.state)).toEqual(['online', 'restarting']);
      },
      { unchecked: true },
    ));

  test('HEL27: an operator’s word reaches every device as status restarting', () =>
    onStage(
      async ({ world, a, b }) => {
        say(world, { kind: 'restarting' });
        for (const device of [a, b]) expect(await device.next('status')).toMatchObject({ payload: { state: 'restarting' } });
      },
      { unchecked: true },
    ));
});
