import { lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

test('MSG15 MSG16 CHA12: a new thread: every device gets channel.created first, then the echo in it', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const away = await tenant.join('away');
    away.cut();
    const echo = await a.send('Please plan the **trip** to Rome\nand book it', { auto_thread: true });
    expect(echo).toMatchObject({ type: 'message', chat_id: 'android:default', thread_id: expect.stringMatching(/^t_\d+$/) });
    const inside = { chat_id: echo.chat_id!, thread_id: echo.thread_id! };
    await b.next('message');
    await away.join();
    await away.sync();
    for (const device of [a, b, away]) {
      const story = device.frames(['channel.created', 'message']);
      expect(story.map(({ type }) => type)).toEqual(['channel.created', 'message']);
      expect(story[0]).toMatchObject({
        ...inside,
        payload: { ...inside, kind: 'thread', parent_chat_id: 'android:default', auto: true, name: 'Please plan the trip to Rome' },
      });
      expect(story[1]!.payload.message_id).toBe(echo.payload.message_id);
    }
    expect(a.frames('channel.created')[0]).not.toHaveProperty('id');
    const turn = await agent.turn();
    expect(turn).toMatchObject({ ...inside, offer: { channel: { kind: 'thread', auto: true, name: 'Please plan the trip to Rome' } } });
    turn.start();
    turn.delta('Fine.');
    turn.stop();
    turn.end();
    await b.next('agent.idle');
    for (const frame of b.frames(['message.start', 'message.stop', 'agent.busy', 'agent.idle'])) expect(frame).toMatchObject(inside);
    expect((await a.history(inside)).payload.messages).toHaveLength(2);
    expect((await a.history(lane)).payload.messages).toEqual([]);
    await world.settle();
  }));

test('MSG17 CHA11: the agent’s title comes as channel.renamed', () =>
  onStage(async ({ agent, a, b }) => {
    const echo = await a.send('what is the weather', { auto_thread: true });
    const turn = await agent.turn();
    // Of its own turn, without naming the lane.
    turn.say('channel.rename', { name: ' Weather\n', only_if_current: 'what is the weather' });
    expect(await b.next('channel.renamed')).toMatchObject({
      chat_id: 'android:default',
      thread_id: echo.thread_id,
      payload: { chat_id: 'android:default', thread_id: echo.thread_id, name: 'Weather' },
    });
    turn.end();
    await a.next('agent.idle');
  }));

test.each([
  ['a command of the catalog', '/status now', {}],
  ['a command of no catalog', '/unknown', {}],
  ['false', 'hello', { auto_thread: false }],
])('MSG15: %s makes none', (_, text, more) =>
  onStage(async ({ agent, a, b }) => {
    agent.say('commands.catalog', { commands: [{ name: '/status', description: 'x' }] });
    expect(await a.send(text, { auto_thread: true, ...more })).toMatchObject(lane);
    const turn = await agent.turn();
    turn.end();
    await b.next('message');
    expect(b.frames('channel.created')).toEqual([]);
  }),
);

test('MSG15: in a thread it is not looked at; in any channel it is', () =>
  onStage(async ({ agent, a, b }) => {
    const { payload } = await a.request('channel.create', { name: 'work' });
    const first = await a.send('one', { chat_id: payload.chat_id!, auto_thread: true });
    expect(first).toMatchObject({ chat_id: payload.chat_id, thread_id: expect.any(String) });
    const second = await a.send('two', { chat_id: payload.chat_id!, thread_id: first.thread_id!, auto_thread: true });
    expect(second.thread_id).toBe(first.thread_id);
    for (let i = 0; i < 2; i++) {
      (await agent.turn()).end();
      await b.next('agent.idle');
    }
    expect(b.frames('channel.created')).toHaveLength(2);
  }));

describe('MSG4 MSG15: the same send again', () => {
  test('by its client_ref is answered with the message, and makes no second thread', () =>
    onStage(async ({ world, a, b }) => {
      const first = await a.send('once', { auto_thread: true, client_ref: 'r1' });
      for (let i = 0; i < 3; i++) {
        const again = await a.send('once', { auto_thread: true, client_ref: 'r1' });
        expect(again).toMatchObject({ type: 'message', thread_id: first.thread_id, payload: first.payload });
      }
      a.cut();
      await a.join(world.edges[1]!.links.dial('/ws', {}));
      expect(await a.send('once', { auto_thread: true, client_ref: 'r1' })).toMatchObject({ type: 'message', payload: first.payload });
      await world.advance(500);
      expect(b.frames('channel.created')).toHaveLength(1);
      expect(b.frames('message')).toHaveLength(1);
    }));

  test('when the answer was lost on the bus, it comes as the message', () =>
    onStage(
      async ({ world, a, b }) => {
        for (let i = 0; i < 12; i++) {
          const echo = await a.send(`lossy ${i}`, { auto_thread: true, client_ref: `r${i}` });
          expect(echo).toMatchObject({ type: 'message', payload: { text: `lossy ${i}` } });
          const again = await a.send(`lossy ${i}`, { auto_thread: true, client_ref: `r${i}` });
          expect(again).toMatchObject({ type: 'message', payload: echo.payload });
        }
        await world.advance(5_000);
        expect(b.frames('channel.created')).toHaveLength(12);
        expect(b.frames('message')).toHaveLength(12);
      },
      { faults: { bus_drop: 0.2, bus_repeat: 0.1 }, seed: 11 },
    ));

  test('when the instance died with it, it is one thread and one message', () =>
    onStage(async ({ world, tenant, a, b }) => {
      world.backbone.faults = { ...world.backbone.faults, store_ms: [30, 30], outbox_ms: [30, 30] };
      for (const wait of [20, 50, 80, 110]) {
        const sent = a.send(`dying ${wait}`, { auto_thread: true });
        await world.advance(wait);
        for (const session of world.sessions) session.kill();
        await world.startSession();
        expect(await sent).toMatchObject({ type: 'message', payload: { text: `dying ${wait}` } });
      }
      await world.advance(3_000);
      const threads = (await world.store.channels.list(tenant.tenant_id)).filter(({ kind }) => kind === 'thread');
      expect(threads).toHaveLength(4);
      expect(b.frames('channel.created')).toHaveLength(4);
      const said = b.frames((frame) => frame.payload.role === 'user').map(({ payload }) => payload.text);
      expect(said).toEqual([20, 50, 80, 110].map((wait) => `dying ${wait}`));
    }));
});

test('MSG15 LIM14: it does not wait behind what waits in the flat lane', () =>
  onStage(
    async ({ agent, a }) => {
      for (let i = 0; i < 3; i++) await a.send(`flat ${i}`);
      expect(await a.send('one more')).toMatchObject({ type: 'error', payload: { code: 'rate_limited' } });
      expect(await a.send('a matter of its own', { auto_thread: true })).toMatchObject({ type: 'message' });
      await agent.connect();
    },
    { quotas: { waiting_per_lane: 3 }, agent: false },
  ));

test('MSG3 MSG15: what is refused leaves no thread', () =>
  onStage(async ({ world, tenant, a }) => {
    expect(await a.send('x', { auto_thread: true, reply_to: 'm_nowhere' })).toMatchObject({
      type: 'error',
      payload: { code: 'not_found' },
    });
    expect(await a.send(' ', { auto_thread: true })).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
    expect(await world.store.channels.list(tenant.tenant_id)).toHaveLength(1);
    expect(tenant.log).toEqual([]);
  }));
