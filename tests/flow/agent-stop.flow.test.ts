import { lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

test('STO2: with nothing running it is acknowledged, and nothing else happens', () =>
  onStage(async ({ world, tenant, agent, a }) => {
    expect(await a.request('agent.stop', {}, lane)).toMatchObject({ type: 'ack', payload: { ok: true } });
    await world.advance(15_000);
    expect(tenant.log).toEqual([]);
    expect(agent.received.all.filter(({ type }) => type === 'agent.stop')).toEqual([]);
  }));

test('STO1 C29: another device, through the other edge, stops a running turn', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('some');
    await b.next('message.update');
    expect(await b.request('agent.stop', {}, lane)).toMatchObject({ type: 'ack', payload: { ok: true } });
    await agent.next('agent.stop');
    expect(turn.stopped).toBe(true);
    turn.stop();
    turn.end('cancelled');
    await a.next('agent.idle');
    await b.next('agent.idle');
    await world.advance(12_000);
    for (const device of [a, b]) expect(device.frames('agent.idle')).toHaveLength(1);
    expect(b.frames('message.stop')[0]?.payload.final_text).toBe('some');
  }));

test('STO1 HEL22 HEL24 TRN6 C29: every device has left in mid-turn; a new one learns what runs, through either edge, and stops it', () =>
  onStage(
    async ({ world, tenant, agent, a, b }) => {
      for (const [n, what] of (['words', 'tool', 'question'] as const).entries()) {
        const { payload } = await a.request('channel.create', { name: what });
        const chat = { chat_id: payload.chat_id! };
        await a.send('question', chat);
        const turn = await agent.turn();
        if (what === 'words') {
          turn.start();
          turn.delta('some words');
        } else if (what === 'tool') turn.toolStart(0, 'terminal');
        else {
          turn.picker('confirm', { choices: [{ value: 'y', label: 'Y' }] });
          turn.busy('waiting_input');
        }
        await world.advance(300);
        for (const one of [a, b]) one.cut();
        await world.advance(2_000);
        const late = await tenant.join(`late ${what}`, { edge: n % 2 });
        await world.settle();
        expect(late.frames('agent.busy').map(({ chat_id }) => chat_id)).toEqual([chat.chat_id]);
        expect(late.frames('message.update').map(({ payload: { text } }) => text)).toEqual(what === 'words' ? ['some words'] : []);
        expect(late.frames('picker.confirm')).toHaveLength(what === 'question' ? 1 : 0);
        expect(await late.request('agent.stop', {}, chat)).toMatchObject({ type: 'ack', payload: { ok: true } });
        await agent.next('agent.stop');
        expect(turn.stopped).toBe(true);
        turn.end('cancelled');
        await late.next('agent.idle');
        expect(late.frames('agent.idle')).toHaveLength(1);
        if (what === 'question') expect(late.frames('picker.closed')).toHaveLength(1);
        late.cut();
        for (const one of [a, b]) {
          await one.join();
          await one.sync();
        }
      }
    },
    { unchecked: true },
  ));

describe('STO1 C27: a stop right behind the send', () => {
  test.each([[0], [1], [20], [500]])('%i ms later, with an agent that takes a second to accept', (gap) =>
    onStage(async ({ world, agent, a, b }) => {
      const sent = a.send('question');
      if (gap > 0) await world.advance(gap);
      const stopped = a.request('agent.stop', {}, lane);
      expect(await sent).toMatchObject({ type: 'message' });
      expect(await stopped).toMatchObject({ type: 'ack', payload: { ok: true } });
      await world.advance(1_000);
      for (const turn of agent.turns.values()) {
        turn.accept();
        await world.advance(10);
        if (turn.stopped) turn.end('cancelled');
      }
      await world.advance(12_000);
      expect(b.frames(['message.start', 'message.update', 'tool.start'])).toEqual([]);
      expect(b.frames(['agent.busy', 'agent.idle']).map(({ type }) => type)).toEqual(['agent.busy', 'agent.idle']);
      await a.send('and again');
      let next = await agent.turn();
      if (next.text === 'question') next = await agent.turn();
      expect(next.text).toBe('and again');
      next.end();
      await b.next((frame) => frame.type === 'agent.idle');
    }),
  );
});

describe('TRN3 O10: a turn that ends before the agent has accepted it has its one agent.idle', () => {
  test.each([
    ['C27: stopped, and cancelled by the agent', 'cancelled'],
    ['failed', 'failed'],
    ['completed', 'completed'],
  ] as const)('%s', (_, outcome) =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      if (outcome === 'cancelled') {
        await a.request('agent.stop', {}, lane);
        await agent.next('agent.stop');
      }
      turn.end(outcome);
      await b.next('agent.idle');
      await world.advance(12_000);
      turn.accept();
      await world.advance(1_000);
      for (const device of [a, b])
        expect(device.frames(['agent.busy', 'agent.idle']).map(({ type }) => type)).toEqual(['agent.busy', 'agent.idle']);
    }),
  );

  test('C27: stopped while no agent is there', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        await a.send('one');
        await a.send('two');
        for (const ends of [1, 2, 2]) {
          await a.request('agent.stop', {}, lane);
          await world.advance(500);
          expect(b.frames('agent.busy')).toHaveLength(ends);
          expect(b.frames('agent.idle')).toHaveLength(ends);
        }
        expect(await world.store.turns.waiting(tenant.tenant_id, lane as never)).toBe(0);
      },
      { agent: false },
    ));
});

test('STO3: an agent that does not answer the stop loses the turn within 11 s', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('on and on');
    await b.next('message.update');
    const start = world.time.now();
    await a.request('agent.stop', {}, lane);
    await b.next('agent.idle');
    expect(world.time.now() - start).toBeGreaterThanOrEqual(9_000);
    expect(world.time.now() - start).toBeLessThanOrEqual(11_500);
    expect(b.frames('message.stop')[0]?.payload.final_text).toBe('on and on');
    turn.delta(' and on');
    turn.toolStart(0);
    await world.advance(2_000);
    expect(b.frames().at(-1)?.type).toBe('agent.idle');
  }));

test('STO1: a message that waits behind the stopped turn runs next', () =>
  onStage(async ({ agent, a, b }) => {
    await a.send('one');
    const one = await agent.turn();
    await a.send('two');
    await a.request('agent.stop', {}, lane);
    await agent.next('agent.stop');
    one.end('cancelled');
    const two = await agent.turn();
    expect(two.text).toBe('two');
    two.message('two it is');
    two.end();
    await b.next((frame) => frame.payload.text === 'two it is');
    await b.next('agent.idle');
  }));

test('MSG3: a stop in an unknown lane is not_found', () =>
  onStage(async ({ a }) => {
    expect(await a.request('agent.stop', {}, { chat_id: 'android:chan_9' })).toMatchObject({
      type: 'error',
      payload: { code: 'not_found' },
    });
  }));
