import { lane, onStage, stayAttached, type TestTurn } from '@iris/testkit';
import { expect, test } from '@jest/globals';

test('TRN3 TRN1 C26: a turn of no time at all, a thousand times: busy, message, idle, in that order', () =>
  onStage(async ({ world, agent, a, b }) => {
    for (let i = 0; i < 1_000; i++) {
      // As fast as a device may send.
      if (i >= 290) await world.advance(50);
      await a.send(`question ${i}`);
      const turn = await agent.turn();
      turn.message(`answer ${i}`);
      turn.end();
      await b.next('agent.idle');
    }
    const story = b.frames(['agent.busy', 'agent.idle', 'message']).map(({ type, payload }) => payload.role ?? type);
    expect(story).toEqual(Array.from({ length: 1_000 }, () => ['user', 'agent.busy', 'assistant', 'agent.idle']).flat());
  }));

test('TRN5: a lane’s messages wait their turn, in order; lanes do not wait for each other', () =>
  onStage(async ({ world, tenant, agent, a }) => {
    const { row } = (await world.store.channels.create({
      tenant_id: tenant.tenant_id,
      name: 'other',
      auto: false,
      idempotency_key: 'k',
      max: 100,
      at: world.time.now(),
    })) as { row: { chat_id: string } };
    for (const text of ['one', 'two', 'three']) await a.send(text);
    const first = await agent.turn();
    expect(first.text).toBe('one');
    await a.send('elsewhere', { chat_id: row.chat_id });
    const elsewhere = await agent.turn();
    expect(elsewhere).toMatchObject({ text: 'elsewhere', chat_id: row.chat_id });
    await world.advance(5_000);
    expect([...agent.turns.values()]).toHaveLength(2);
    first.end();
    const second = await agent.turn();
    expect(second.text).toBe('two');
    second.end();
    expect((await agent.turn()).text).toBe('three');
    for (const turn of agent.turns.values()) turn.end();
    await a.next((frame) => frame.type === 'agent.idle' && frame.chat_id === row.chat_id);
    await world.advance(500);
  }));

test('LIM13: no more turns run at once than the tenant’s quota', () =>
  onStage(async ({ world, tenant, agent, a }) => {
    await world.store.tenants.setQuotas(tenant.tenant_id, { running_turns: 2 });
    const chats = [];
    for (let i = 0; i < 4; i++) {
      const made = await world.store.channels.create({
        tenant_id: tenant.tenant_id,
        name: `c${i}`,
        auto: false,
        idempotency_key: `k${i}`,
        max: 100,
        at: world.time.now(),
      });
      chats.push((made as { row: { chat_id: string } }).row.chat_id);
    }
    await world.advance(35_000);
    for (const chat_id of chats) await a.send(`in ${chat_id}`, { chat_id });
    const running: TestTurn[] = [await agent.turn(), await agent.turn()];
    await world.advance(3_000);
    expect(agent.turns.size).toBe(2);
    for (let left = 2; left > 0; left--) {
      running.shift()!.end();
      running.push(await agent.turn());
    }
    for (const turn of running) turn.end();
    await world.advance(1_000);
  }, {}));

test('TRN6 C30: every device leaves in mid-turn: the answer is stored and comes by sync', () =>
  onStage(
    async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('ans');
      await a.next('message.update');
      a.cut();
      b.cut();
      await world.advance(1_000);
      turn.delta('wer');
      turn.stop();
      turn.end();
      await world.advance(1_000);
      await a.join();
      await a.sync();
      expect(a.frames('message.stop')).toMatchObject([{ payload: { final_text: 'answer' } }]);
      expect(a.frames('agent.idle')).toHaveLength(1);
      expect((await a.history(lane)).payload.messages?.map(({ text }) => text)).toEqual(['question', 'answer']);
    },
    { unchecked: true },
  ));

test('TRN7 C32: a turn that fails leaves its partial text, a system message that says why, and idle', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('I was about to');
    await b.next('message.update');
    turn.end('failed', { error: 'the model is overloaded' });
    expect((await b.next('message.stop')).payload.final_text).toBe('I was about to');
    expect((await b.next('message')).payload).toMatchObject({ role: 'system', text: expect.stringContaining('the model is overloaded') });
    await b.next('agent.idle');
    await world.advance(1_000);
    expect(b.frames('agent.idle')).toHaveLength(1);
  }));

test('TRN8 LNK26 C79: the session instance dies during a turn: it is not run again, and ends once', () =>
  onStage(async (stage) => {
    const { world, agent, a, b } = stage;
    stayAttached(stage);
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('part');
    await b.next('message.update');
    for (let i = 0; i < 3; i++) {
      world.sessions.filter(({ alive }) => alive)[0]!.kill();
      await world.startSession();
      await world.advance(1_000);
    }
    turn.delta('ing');
    turn.stop();
    turn.end();
    expect((await b.next('message.stop')).payload.final_text).toBe('parting');
    await b.next('agent.idle');
    await world.advance(40_000);
    expect(agent.turns.size).toBe(1);
    expect(agent.received.all.filter(({ type }) => type === 'turn.start')).toHaveLength(1);
    expect(b.frames('agent.idle')).toHaveLength(1);
  }));

test('TRN9: while no agent is attached, one notice per lane', () =>
  onStage(
    async ({ world, b, a }) => {
      await a.send('is anyone there?');
      await a.send('hello?');
      const notice = await b.next((frame) => frame.payload.role === 'system');
      expect(notice).toMatchObject({ type: 'message', ...lane });
      await world.advance(60_000);
      expect(b.frames((frame) => frame.payload.role === 'system')).toHaveLength(1);
    },
    { agent: false },
  ));

test('TRN2 TRN4: reasons are told, and nothing of the turn comes after idle', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.busy('tool');
    expect((await b.next((frame) => frame.type === 'agent.busy' && frame.payload.reason === 'tool')).payload.reason).toBe('tool');
    turn.start();
    turn.delta('x');
    turn.typing();
    turn.toolStart(0);
    turn.toolProgress(0, 'late');
    turn.toolEnd(0);
    turn.stop();
    turn.end();
    turn.typing();
    turn.toolProgress(0, 'too late');
    turn.say('message.update', { message_id: 'x', text: 'much too late' });
    await b.next('agent.idle');
    await world.advance(15_000);
    expect(b.frames().at(-1)?.type).toBe('agent.idle');
  }));

test('C34: a turn of fifteen minutes ends like any other', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('take your time');
    const turn = await agent.turn();
    turn.start();
    for (let minute = 0; minute < 15; minute++) {
      turn.typing();
      turn.delta(`${minute} `);
      await world.advance(60_000);
    }
    turn.stop();
    turn.end();
    expect((await b.next('message.stop')).payload.final_text).toMatch(/14 $/);
    await b.next('agent.idle');
  }));

test.each(['says nothing', 'runs one tool', 'waits for an answer'])(
  'TRN3 TYP2 C34: a turn that %s for fifteen minutes ends like any other',
  (what) =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('take your time');
      const turn = await agent.turn();
      turn.typing();
      if (what === 'runs one tool') turn.toolStart(0, 'terminal');
      if (what === 'waits for an answer') {
        turn.picker('approval', { choices: [{ value: 'y', label: 'Y' }], expires_at: world.time.now() + 20 * 60_000 });
        turn.busy('waiting_input');
      }
      // Nobody who says that he types types for a quarter of an hour.
      await b.next('typing');
      await b.next('typing.stop', { within_ms: 12_000 });
      for (let minute = 0; minute < 15; minute++) {
        await world.advance(60_000);
        if (minute % 5 === 4) turn.typing();
      }
      expect(b.frames('agent.idle')).toEqual([]);
      expect(agent.received.all.filter(({ type }) => type === 'turn.start')).toHaveLength(1);
      if (what === 'runs one tool') turn.toolEnd(0);
      if (what === 'waits for an answer') {
        const { picker_id } = b.frames('picker.approval')[0]!.payload;
        expect(await b.request('picker.select', { picker_id: picker_id!, value: 'y' })).toMatchObject({ type: 'ack' });
      }
      turn.message('done');
      turn.end();
      for (const device of [a, b]) {
        await device.next('agent.idle');
        expect(device.frames(['typing', 'typing.stop']).at(-1)?.type).toBe('typing.stop');
        expect(device.frames('agent.idle')).toHaveLength(1);
      }
    }),
);

test('LIM14: over the number of waiting messages of a lane, message.send is rate_limited', () =>
  onStage(
    async ({ world, tenant, a }) => {
      await world.store.tenants.setQuotas(tenant.tenant_id, { waiting_per_lane: 3 });
      await world.advance(35_000);
      const answers = [];
      for (let i = 0; i < 6; i++) answers.push(await a.send(`message ${i}`));
      expect(answers.filter(({ type }) => type === 'message').length).toBeGreaterThanOrEqual(3);
      const last = answers.at(-1)!;
      expect(last).toMatchObject({ type: 'error', payload: { code: 'rate_limited' } });
      expect(last.payload.retry_after_ms).toBeGreaterThanOrEqual(1);
    },
    { agent: false },
  ));
