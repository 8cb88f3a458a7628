import { makeWorld, onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

test('LIM6 ERR4: sends over the rate are refused with the time to wait, and then taken again', () =>
  onStage(
    async ({ world, tenant, a }) => {
      const answers = await Promise.all(Array.from({ length: 320 }, (_, i) => a.send(`message ${i}`)));
      const refused = answers.filter(({ type }) => type === 'error');
      expect(refused.length).toBeGreaterThanOrEqual(15);
      expect(refused.length).toBeLessThanOrEqual(20);
      for (const { payload } of refused) expect(payload).toMatchObject({ code: 'rate_limited', retry_after_ms: expect.any(Number) });
      expect(refused[0]!.payload.retry_after_ms).toBeGreaterThanOrEqual(1);
      await world.advance(Math.max(...refused.map(({ payload }) => payload.retry_after_ms!)));
      expect(await a.send('later')).toMatchObject({ type: 'message' });
      expect(tenant.log.filter(({ frame }) => frame.type === 'message')).toHaveLength(answers.length - refused.length + 1);
    },
    { quotas: { waiting_per_lane: 1_000 } },
  ));

test('LIM7: frames over the rate: requests with an id are refused, the connection stays', () =>
  onStage(async ({ world, a, b }) => {
    const answers = await Promise.all(Array.from({ length: 1_100 }, () => a.request('ping')));
    const refused = answers.filter(({ type }) => type === 'error');
    expect(refused.length).toBeGreaterThanOrEqual(80);
    for (const { payload } of refused) expect(payload.code).toBe('rate_limited');
    expect(await b.request('ping')).toMatchObject({ type: 'pong' });
    await world.advance(2_000);
    expect(await a.request('ping')).toMatchObject({ type: 'pong' });
  }));

test('LIM9 CLS10: more sockets of one address than allowed that say nothing', async () => {
  const world = await makeWorld({ edge_config: { sockets_before_hello: 20 } });
  const tenant = await world.tenant();
  const silent = [];
  for (let i = 0; i < 20; i++) {
    const device = tenant.device(`silent ${i}`, { address: '10.0.0.1' });
    await device.connect();
    silent.push(device);
  }
  const extra = tenant.device('extra', { address: '10.0.0.1' });
  await extra.connect();
  expect((await extra.closed()).code).toBe(1013);
  expect((await tenant.device('elsewhere', { address: '10.0.0.2' }).join()).type).toBe('hello.ack');
  expect((await silent[0]!.hello()).type).toBe('hello.ack');
  expect((await tenant.device('again', { address: '10.0.0.1' }).join()).type).toBe('hello.ack');
});

test('LIM10: connections of a tenant have a quota', async () => {
  const world = await makeWorld();
  const tenant = await world.tenant({ connections: 2 });
  await tenant.join('one', { edge: 0 });
  await tenant.join('two', { edge: 1 });
  const three = tenant.device('three', { edge: 0 });
  await three.connect();
  expect(await three.hello()).toMatchObject({ type: 'error', payload: { code: 'rate_limited' } });
});

test('LIM6: a device that comes back through another edge finds its bucket as it left it', () =>
  onStage(
    async ({ world, tenant }) => {
      const hopper = await tenant.join('hopper', { edge: 0 });
      expect(
        (await Promise.all(Array.from({ length: 12 }, (_, i) => hopper.send(`${i}`)))).filter(({ type }) => type === 'error'),
      ).toHaveLength(2);
      const again = await tenant.join('hopper', { edge: 1 });
      const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => again.send(`again ${i}`)));
      const refused = answers.filter(({ type }) => type === 'error');
      // An edge's own bucket is asked first; the one behind all edges is a second larger.
      expect(refused.length).toBeGreaterThanOrEqual(8);
      for (const { payload } of refused) expect(payload).toMatchObject({ code: 'rate_limited', retry_after_ms: expect.any(Number) });
      await world.advance(3_000);
      expect(await again.send('later')).toMatchObject({ type: 'message' });
    },
    { quotas: { sends_per_second: 1, sends_burst: 10, waiting_per_lane: 1_000 }, unchecked: true },
  ));

test('LIM7: so do its frames', () =>
  onStage(
    async ({ world, tenant }) => {
      const ask = async (edge: number) => {
        const device = await tenant.join('hopper', { edge });
        const answers = await Promise.all(Array.from({ length: 20 }, () => device.request('commands.catalog', {})));
        return answers.filter(({ type }) => type !== 'error').length;
      };
      expect(await ask(0)).toBe(20);
      expect(await ask(1)).toBeLessThanOrEqual(2);
      await world.advance(20_000);
      expect(await ask(0)).toBe(20);
    },
    { quotas: { frames_per_second: 1, frames_burst: 20 } },
  ));

test('LIM6: what a tenant’s devices send together is limited across edges; another tenant is not', () =>
  onStage(
    async ({ world, tenant, a, b }) => {
      const others = await world.tenant();
      const [c, stranger] = [await tenant.join('third', { edge: 1 }), await others.join('stranger', { edge: 0 })];
      const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => [a, b, c][i % 3]!.send(`message ${i}`)));
      const refused = answers.filter(({ type }) => type === 'error');
      expect(refused).toHaveLength(40);
      for (const { payload } of refused) expect(payload).toMatchObject({ code: 'rate_limited', retry_after_ms: expect.any(Number) });
      expect(await stranger.send('free')).toMatchObject({ type: 'message' });
      await world.advance(1_000);
      expect(await b.send('later')).toMatchObject({ type: 'message' });
    },
    { quotas: { tenant_sends_per_second: 2, tenant_sends_burst: 20, waiting_per_lane: 1_000 } },
  ));
