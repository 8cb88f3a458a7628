import { lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const cursors = (frames: readonly { cursor?: number }[]) => frames.map(({ cursor }) => cursor);

test('SYN1 SYN10 ENV18 OUT2: what was missed, in order, each with its cursor, then sync.done with the head', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const from = tenant.log.at(-1)?.cursor ?? 0;
    b.cut();
    await a.send('question');
    const turn = await agent.turn();
    turn.toolStart(0);
    turn.toolEnd(0);
    turn.commentary('hm');
    turn.start();
    turn.delta('answer');
    turn.stop();
    turn.end();
    await a.next('agent.idle');
    await b.join();
    await world.settle();
    b.received.skip();
    const done = await b.sync(from);
    expect(done.payload).toEqual({ cursor: tenant.log.at(-1)!.cursor });
    const replayed = b.received.rest().map(({ frame }) => frame);
    expect(replayed.pop()?.type).toBe('sync.done');
    const expected = tenant.log.filter(({ frame }) => frame.type !== 'agent.busy');
    expect(cursors(replayed)).toEqual(expected.map(({ cursor }) => cursor));
    expect(replayed.map(({ type }) => type)).toEqual(expected.map(({ frame }) => frame.type));
  }));

test('SYN2 SYN10: what this connection got live is not repeated', () =>
  onStage(
    async ({ a, b }) => {
      b.cut();
      await a.send('one');
      await a.send('two');
      await b.join();
      await a.send('three');
      await b.next((frame) => frame.payload.text === 'three');
      b.received.skip();
      await b.sync(0);
      expect(b.received.rest().map(({ frame }) => frame.payload.text ?? frame.type)).toEqual(['one', 'two', 'sync.done']);
      b.received.skip();
      await b.sync(0);
      expect(b.received.rest().map(({ frame }) => frame.payload.text ?? frame.type)).not.toContain('three');
    },
    { unchecked: true },
  ));

test('SYN10: frames that are appended while it reads join without gap or repeat', () =>
  onStage(
    async ({ world, tenant, a, b }) => {
      b.cut();
      for (let i = 0; i < 150; i++) await a.send(`before ${i}`);
      world.backbone.faults = { ...world.backbone.faults, outbox_ms: [5, 15] };
      await b.join();
      const syncing = b.sync(0);
      for (let i = 0; i < 100; i++) {
        void a.send(`during ${i}`);
        await world.advance(3);
      }
      await syncing;
      await world.advance(3_000);
      const texts = b.frames('message').map(({ payload }) => payload.text);
      expect(new Set(texts).size).toBe(texts.length);
      expect(texts).toHaveLength(250);
      expect(tenant.log.filter(({ frame }) => frame.type === 'message')).toHaveLength(250);
    },
    { quotas: { waiting_per_lane: 1_000 } },
  ));

test('SYN3 SYN12 C06: without a cursor from the watermark; what was never confirmed comes again', () =>
  onStage(
    async ({ world, a, b }) => {
      await a.send('seen and confirmed');
      await b.next('message');
      await world.advance(7_000);
      b.autoPong(false);
      await a.send('written to the socket only');
      await b.next('message');
      b.cut({ silent: true });
      for (let i = 0; i < 30; i++) {
        await a.send(`into the dark ${i}`);
        await world.advance(500);
      }
      b.autoPong(true);
      await b.join();
      b.received.skip();
      await b.sync();
      const replayed = b.received.rest().flatMap(({ frame }) => frame.payload.text ?? []);
      expect(replayed).toEqual(['written to the socket only', ...Array.from({ length: 30 }, (_, i) => `into the dark ${i}`)]);
      b.received.skip();
      await b.sync(0);
    },
    { unchecked: true },
  ));

test('C04: a device that was cut before it received anything gets all, from its first sync_cursor, from 0, and without a cursor', () =>
  onStage(async ({ tenant, a }) => {
    for (const [name, cursor] of [
      ['x', 'first'],
      ['y', 0],
      ['z', undefined],
    ] as const) {
      const device = tenant.device(name);
      const ack = await device.join();
      device.cut();
      for (let i = 0; i < 10; i++) await a.send(`${name} ${i}`);
      await device.join();
      await device.sync(cursor === 'first' ? ack.payload.sync_cursor : cursor);
      const got = device.frames('message').filter(({ payload }) => payload.text?.startsWith(`${name} `));
      expect(got.map(({ payload }) => payload.text)).toEqual(Array.from({ length: 10 }, (_, i) => `${name} ${i}`));
      device.cut();
    }
  }));

test('C05: twenty times cut, away, back: each time exactly what was missed, and one live connection', () =>
  onStage(async ({ world, tenant, a, b }) => {
    for (let round = 0; round < 20; round++) {
      b.cut({ silent: round % 2 === 0 });
      for (let i = 0; i < 3; i++) await a.send(`round ${round} ${i}`);
      await b.join(world.edges[round % 2]!.links.dial('/ws'));
      b.received.skip();
      await b.sync();
      const got = b.received.rest().flatMap(({ frame }) => frame.payload.text ?? []);
      expect(got.slice(-3)).toEqual([0, 1, 2].map((i) => `round ${round} ${i}`));
      await world.advance(6_000);
      const live = (await world.backbone.outbox.devices(tenant.tenant_id)).filter(({ device_id }) => device_id === 'tablet');
      expect(live).toHaveLength(1);
    }
  }));

test('C11 D2: live frames do not move the watermark past what was missed and never synced', () =>
  onStage(
    async ({ world, tenant, a, b }) => {
      await a.send('before');
      await b.next('message');
      await world.advance(7_000);
      const old = tenant.log.at(-1)!.cursor;
      b.cut();
      for (let i = 0; i < 5; i++) await a.send(`missed ${i}`);
      await b.join();
      for (let i = 0; i < 2; i++) await a.send(`live ${i}`);
      await b.next((frame) => frame.payload.text === 'live 1');
      await world.advance(20_000);
      b.cut();
      const ack = await b.join();
      expect(ack.payload.sync_cursor).toBe(old);
      b.received.skip();
      await b.sync();
      expect(b.received.rest().flatMap(({ frame }) => frame.payload.text ?? [])).toEqual([
        ...[0, 1, 2, 3, 4].map((i) => `missed ${i}`),
        'live 0',
        'live 1',
      ]);
    },
    { unchecked: true },
  ));

test('SYN5: of a lane’s busy and idle only the last', () =>
  onStage(
    async ({ agent, a, b }) => {
      b.cut();
      for (let i = 0; i < 3; i++) {
        await a.send(`question ${i}`);
        const turn = await agent.turn();
        turn.message(`answer ${i}`);
        turn.end();
        await a.next('agent.idle');
      }
      await b.join();
      await b.sync(0);
      expect(b.frames(['agent.busy', 'agent.idle']).map(({ type }) => type)).toEqual(['agent.idle']);
      expect(b.frames('message')).toHaveLength(6);
    },
    { unchecked: true },
  ));

test('SYN7: what is running now is told after hello.ack and not repeated by sync', () =>
  onStage(async ({ agent, a, b }) => {
    b.cut();
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('running');
    await a.next('message.update');
    await b.join();
    await b.sync(0);
    expect(b.frames('message.start')).toHaveLength(1);
    expect(b.frames('agent.busy')).toHaveLength(1);
    turn.stop();
    turn.end();
    await b.next('agent.idle');
    await a.next('agent.idle');
  }));

describe('cursors that are no position', () => {
  test('SYN8 D3 C01 C69: older than retention: truncated, and history has the rest', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        await world.store.tenants.setQuotas(tenant.tenant_id, { outbox_max_frames: 50 });
        await world.advance(35_000);
        const from = tenant.log.at(-1)?.cursor ?? 0;
        b.cut();
        for (let i = 0; i < 80; i++) {
          await a.send(`message ${i}`);
          await world.advance(50);
        }
        await b.join();
        b.received.skip();
        const done = await b.sync(from);
        expect(done.payload).toMatchObject({ cursor: tenant.log.at(-1)!.cursor, truncated: true });
        const replayed = b.received.rest().flatMap(({ frame }) => frame.payload.text ?? []);
        expect(replayed.length).toBeLessThanOrEqual(50);
        expect(replayed.at(-1)).toBe('message 79');
        expect((await b.historyAll(lane, 50)).filter(({ role }) => role === 'user')).toHaveLength(80);
      },
      { agent: false, unchecked: true },
    ));

  test('SYN9: above the head: reset, with the head', () =>
    onStage(
      async ({ tenant, a, b }) => {
        await a.send('one');
        const head = tenant.log.at(-1)!.cursor;
        b.received.skip();
        const done = await b.sync(head + 1_000);
        expect(done.payload).toEqual({ cursor: head, reset: true });
        await a.send('two');
        expect((await b.next('message')).payload.text).toBe('one');
        expect((await b.next('message')).payload.text).toBe('two');
      },
      { unchecked: true },
    ));

  test('SYN1: a cursor at the head replays nothing', () =>
    onStage(async ({ tenant, a, b }) => {
      await a.send('one');
      await b.next('message');
      expect((await b.sync(tenant.log.at(-1)!.cursor)).payload).toEqual({ cursor: tenant.log.at(-1)!.cursor });
      expect(b.received.rest().map(({ frame }) => frame.type)).toEqual(['sync.done']);
    }));

  test('SYN1: a tenant in which nothing was ever said', () =>
    onStage(async ({ a }) => {
      expect((await a.sync(0)).payload).toEqual({ cursor: 0 });
      expect((await a.sync()).payload).toEqual({ cursor: 0 });
    }));
});

test('ENV21: two syncs at once are both answered, in order', () =>
  onStage(
    async ({ a, b }) => {
      b.cut();
      for (let i = 0; i < 10; i++) await a.send(`message ${i}`);
      await b.join();
      const [one, two] = await Promise.all([b.sync(0), b.sync()]);
      expect([one.type, two.type]).toEqual(['sync.done', 'sync.done']);
      expect(b.frames('message').length).toBeGreaterThanOrEqual(10);
    },
    { unchecked: true },
  ));
