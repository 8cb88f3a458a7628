import { lane, onStage, stayAttached } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

describe('agent.steer', () => {
  test('STE1 STE2 STE3 LNK22: into the running turn: a message of the lane, with steer, and no turn of its own', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      const answer = await b.request('agent.steer', { text: 'focus on the error' }, lane);
      expect(answer).toMatchObject({ type: 'ack', payload: { ok: true, message_id: expect.any(String) } });
      const message_id = (answer.payload as { message_id: string }).message_id;
      for (const device of [a, b]) {
        const shown = await device.next((frame) => frame.payload.message_id === message_id);
        expect(shown).toMatchObject({ type: 'message', ...lane, payload: { role: 'user', text: 'focus on the error', steer: true } });
        expect(shown).not.toHaveProperty('id');
      }
      await world.settle();
      expect(turn.steers).toEqual(['focus on the error']);
      expect(await b.next('read.receipt')).toMatchObject({ payload: { message_id } });
      expect((await a.history(lane)).payload.messages!.at(-1)).toMatchObject({ message_id, steer: true, text: 'focus on the error' });
      turn.message('answer');
      turn.end();
      await b.next('agent.idle');
      await world.advance(2_000);
      expect(agent.turns.size).toBe(1);
    }));

  test('STE2: with nothing running it becomes a turn', () =>
    onStage(async ({ agent, a, b }) => {
      const answer = await a.request('agent.steer', { text: 'do this' }, lane);
      const turn = await agent.turn();
      expect(turn.text).toBe('do this');
      expect((turn.offer.message as { message_id: string } | undefined)?.message_id).toBe(answer.payload.message_id);
      expect(await a.next('read.receipt')).toMatchObject({ payload: { message_id: answer.payload.message_id } });
      turn.end();
      await b.next('agent.idle');
    }));

  test('STE2: an agent that cannot be steered, or a turn it has not accepted: the lane’s next turn', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const agent = tenant.agent({ caps: { steer: false } });
        await agent.connect();
        await a.send('question');
        const turn = await agent.turn({ accept: false });
        await a.request('agent.steer', { text: 'before it is accepted' }, lane);
        turn.accept();
        await b.next('agent.busy');
        await a.request('agent.steer', { text: 'cannot be taken' }, lane);
        await world.advance(500);
        expect(turn.steers).toEqual([]);
        turn.end();
        for (const text of ['before it is accepted', 'cannot be taken']) {
          const next = await agent.turn();
          expect(next.text).toBe(text);
          next.end();
        }
        await b.next((frame) => frame.type === 'agent.idle' && b.frames('agent.idle').length === 3);
      },
      { agent: false },
    ));

  test('STE2 LNK22: refused by the agent, or never answered: the lane’s next turn, once', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      // What the agent does not hear before its turn has ended is not taken.
      agent.pause();
      await a.request('agent.steer', { text: 'too late' }, lane);
      turn.end();
      await b.next('agent.idle');
      agent.resume();
      const next = await agent.turn();
      expect(next.text).toBe('too late');
      next.end();
      await world.advance(3_000);
      expect(agent.turns.size).toBe(2);
      expect(b.frames('agent.idle')).toHaveLength(2);
    }));

  test('STE2 STO1: stopped turns leave what was said to them as the next', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      await a.request('agent.stop', {}, lane);
      await a.request('agent.steer', { text: 'instead, this' }, lane);
      await world.settle();
      expect(turn.steers).toEqual([]);
      turn.end('cancelled');
      const next = await agent.turn();
      expect(next.text).toBe('instead, this');
      next.end();
      await b.next((frame) => frame.type === 'agent.idle' && b.frames('agent.idle').length === 2);
    }));

  test('STE2: the agent is lost with it: used or refused, never forgotten', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      await agent.turn();
      agent.pause();
      await a.request('agent.steer', { text: 'into the dark' }, lane);
      await world.advance(100);
      agent.cut();
      await world.advance(35_000);
      await b.next('agent.idle');
      agent.restart();
      await agent.connect();
      const next = await agent.turn();
      expect(next.text).toBe('into the dark');
      next.end();
      await b.next('agent.idle');
    }));

  test('ENV24 STE3: the instance dies with it: one message, used once', () =>
    onStage(async (stage) => {
      const { world, tenant, agent, a, b } = stage;
      stayAttached(stage);
      await a.send('question');
      const turn = await agent.turn();
      await b.next('agent.busy');
      const waits = [5, 15, 25, 35, 45, 55, 65, 85];
      for (const wait of waits) {
        world.backbone.faults = { ...world.backbone.faults, store_ms: [10, 10], outbox_ms: [10, 10] };
        const asked = b.request('agent.steer', { text: `steer ${wait}` }, lane);
        await world.advance(wait);
        for (const session of world.sessions) session.kill();
        world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 0], outbox_ms: [0, 0] };
        await world.startSession();
        expect(await asked).toMatchObject({ type: 'ack', payload: { ok: true } });
        await world.advance(7_000);
      }
      turn.end();
      await world.advance(2_000);
      for (const one of [...agent.turns.values()]) {
        if (one === turn) continue;
        one.accept();
        one.end();
        await world.advance(500);
      }
      await world.advance(2_000);
      const used = [...turn.steers, ...[...agent.turns.values()].filter((one) => one !== turn).map(({ text }) => text)];
      expect(used.sort()).toEqual(waits.map((wait) => `steer ${wait}`).sort());
      expect(tenant.log.filter(({ frame }) => frame.type === 'message' && frame.payload.steer === true)).toHaveLength(waits.length);
      for (const one of agent.turns.values()) expect(one.state).toBe('ended');
    }));

  test('STE4 CHA13 ENV14: blank and long text, and lanes that are not there', () =>
    onStage(async ({ tenant, a }) => {
      for (const text of ['', ' \n\t', 'x'.repeat(64 * 1024 + 1), 7, undefined])
        expect(await a.request('agent.steer', text === undefined ? {} : { text: text as never }, lane)).toMatchObject({
          type: 'error',
          payload: { code: 'unsupported', message: expect.stringMatching(/^text/) },
        });
      expect(await a.request('agent.steer', { text: 'x' })).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
      expect(await a.request('agent.steer', { text: 'x' }, { chat_id: 'android:chan_9' })).toMatchObject({
        type: 'error',
        payload: { code: 'not_found' },
      });
      expect(tenant.log).toEqual([]);
    }));

  test('LIM14: it does not get past the number of messages that may wait', () =>
    onStage(
      async ({ a, agent }) => {
        for (let i = 0; i < 2; i++) await a.send(`m${i}`);
        expect(await a.request('agent.steer', { text: 'one more' }, lane)).toMatchObject({
          type: 'error',
          payload: { code: 'rate_limited' },
        });
        expect((await a.history(lane)).payload.messages).toHaveLength(2);
        await agent.connect();
      },
      { agent: false, quotas: { waiting_per_lane: 2 } },
    ));

  test('DEL2: a steer that is deleted before it became a turn becomes none', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      agent.pause();
      const { payload } = await a.request('agent.steer', { text: 'gone' }, lane);
      await a.request('message.delete', { message_ids: [payload.message_id!] }, lane);
      turn.end();
      await b.next('agent.idle');
      agent.resume();
      await world.advance(3_000);
      expect(agent.turns.size).toBe(1);
    }));

  test('ENV20: without an id it acts the same, and is answered by nothing', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      a.say('agent.steer', { text: 'and this' }, lane);
      await b.next((frame) => frame.payload.steer === true);
      await world.settle();
      expect(a.frames('ack')).toEqual([]);
      turn.end();
      await b.next('agent.idle');
    }));
});
