import { makeToken } from '@iris/protocol';
import { lane, makeWorld, onStage, stayAttached } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

describe('hello', () => {
  test('LNK12 LNK14 LNK1 LNK3: the token in the header, or in hello', async () => {
    const world = await makeWorld();
    const tenant = await world.tenant();
    const agent = tenant.agent();
    expect(await agent.connect()).toMatchObject({
      type: 'hello.ack',
      payload: {
        link_id: expect.any(String),
        epoch: 1,
        last_seq: 0,
        heartbeat_ms: expect.any(Number),
        limits: { text_bytes: 65_536, frame_bytes: 1_048_576 },
        turns: [],
        channels: [{ chat_id: 'android:default' }],
      },
    });
    const other = tenant.agent({ token: tenant.agent_token, dial: world.edges[1]!.links.dial('/agent'), install_id: 'install-1' });
    expect((await other.connect()).type).toBe('hello.ack');
    expect(agent.faults).toEqual([]);
  });

  test.each([
    ['wrong', (tenant: { tenant_id: never }) => makeToken('agent', tenant.tenant_id, 'a-secret-that-nobody-was-ever-given')],
    ['a device’s', (tenant: { device_token: string }) => tenant.device_token],
    ['no token', () => 'hello'],
  ])('LNK2: a token that is %s: error auth and close 4401', async (_, token) => {
    const world = await makeWorld();
    const tenant = await world.tenant();
    const agent = tenant.agent({ token: token(tenant as never), dial: world.edges[0]!.links.dial('/agent') });
    expect(await agent.connect().catch(() => agent.received.all.at(-1))).toMatchObject({ type: 'error', payload: { code: 'auth' } });
    expect((await agent.closed()).code).toBe(4401);
  });

  test('LNK16 CLS5: a newer link of the agent takes over; the older is closed with 4409 and can do nothing', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      agent.autoAck(false);
      await a.send('question');
      const turn = await agent.turn({ accept: false });
      const newer = tenant.agent({
        install_id: agent.install_id,
        dial: world.edges[1]!.links.dial('/agent', { token: tenant.agent_token }),
      });
      await newer.connect(undefined, { boot_id: agent.boot_id });
      expect(newer.epoch).toBeGreaterThan(agent.epoch);
      turn.accept();
      turn.message('from the older link');
      expect((await agent.closed()).code).toBe(4409);
      await world.advance(2_000);
      expect(b.frames((frame) => frame.payload.role === 'assistant')).toEqual([]);
      const again = await newer.turn();
      again.message('from the newer link');
      again.end();
      expect((await b.next((frame) => frame.payload.role === 'assistant')).payload.text).toBe('from the newer link');
      await b.next('agent.idle');
    }));
});

describe('seq and ack', () => {
  test('LNK5 LNK6 LNK7: what was not acked is sent again after a reconnect, in order, and has one effect', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      agent.cut();
      turn.start();
      turn.delta('said while away');
      turn.stop();
      turn.commentary('and more');
      turn.end();
      expect(agent.unacked.length).toBeGreaterThanOrEqual(4);
      await agent.connect(world.edges[1]!.links.dial('/agent', { token: tenant.agent_token }));
      await b.next('agent.idle');
      await world.advance(500);
      expect(agent.unacked).toEqual([]);
      expect(b.frames('message.stop')).toMatchObject([{ payload: { final_text: 'said while away' } }]);
      expect(agent.faults).toEqual([]);
    }));

  test('LNK26: frames that arrive again, because their ack was lost, change nothing', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.toolStart(0);
      turn.toolEnd(0);
      turn.message('answer');
      const sent = [...agent.unacked];
      expect(sent.length).toBeGreaterThanOrEqual(3);
      await b.next((frame) => frame.payload.text === 'answer');
      const before = tenant.log.length;
      for (const frame of sent) agent.raw(JSON.stringify({ v: 1, ...frame }));
      await world.advance(2_000);
      expect(tenant.log).toHaveLength(before);
      turn.end();
      await b.next('agent.idle');
    }));

  test('LNK11: an unknown type is ignored, and acked when it carries a seq', () =>
    onStage(async ({ world, agent, a, b }) => {
      agent.say('from.the.future', { what: 'ever' });
      agent.say('from.the.future', { what: 'ever' }, { durable: true });
      await world.advance(500);
      expect(agent.unacked).toEqual([]);
      await a.send('question');
      const turn = await agent.turn();
      turn.end();
      await b.next('agent.idle');
    }));

  test('LNK7 LNK13: a new installation starts at 0, and gets what the old one had not acked', () =>
    onStage(async ({ agent, a, b }) => {
      agent.autoAck(false);
      await a.send('question');
      await agent.turn({ accept: false });
      agent.autoAck(true);
      agent.restart({ install: true });
      const ack = await agent.connect();
      expect(ack.payload.last_seq).toBe(0);
      const turn = await agent.turn();
      expect(turn.text).toBe('question');
      turn.end();
      await b.next('agent.idle');
      expect(agent.faults).toEqual([]);
    }));

  test('LNK8: what the bus loses between session and edge reaches the agent all the same, in order', () =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      stayAttached(stage);
      world.backbone.faults = { ...world.backbone.faults, bus_drop: 0.2, bus_repeat: 0.2, bus_reorder: 0.2 };
      for (let i = 0; i < 10; i++) {
        while ((await a.send(`question ${i}`, { client_ref: `${i}` })).type === 'error');
        const turn = await agent.turn({ within_ms: 60_000 });
        expect(turn.text).toBe(`question ${i}`);
        turn.message(`answer ${i}`);
        turn.end();
        await b.next('agent.idle', { within_ms: 60_000 });
      }
      expect(agent.faults).toEqual([]);
      world.backbone.faults = { ...world.backbone.faults, bus_drop: 0, bus_repeat: 0, bus_reorder: 0 };
      await world.advance(5_000);
    }));
});

describe('resuming', () => {
  test('LNK31 LNK15 LNK35: the link drops in mid-answer and the same process is back: devices see nothing of it', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('one ');
      await b.next('message.update');
      agent.cut();
      turn.delta('two ');
      await world.advance(20_000);
      await agent.connect(world.edges[1]!.links.dial('/agent', { token: tenant.agent_token }));
      expect((await b.next('message.update')).payload.text).toBe('one two ');
      turn.delta('three');
      turn.stop();
      turn.end();
      expect((await b.next('message.stop')).payload).toMatchObject({ final_text: 'one two three' });
      await b.next('agent.idle');
      expect(b.frames('message.start')).toHaveLength(1);
      expect(b.frames('message.stop')[0]?.payload).not.toHaveProperty('interrupted');
      expect(a.frames('agent.busy')).toHaveLength(1);
    }));

  test('LNK14: hello.ack names the turns the gateway holds', () =>
    onStage(async ({ agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      agent.cut();
      const ack = await agent.connect();
      expect(ack.payload.turns).toMatchObject([{ turn_id: turn.turn_id, ...lane, state: 'running' }]);
      turn.end();
      await b.next('agent.idle');
    }));

  test('LNK33 LNK18: a new process before the turn was accepted: it is sent again, attempt 2', () =>
    onStage(async ({ agent, a, b }) => {
      await a.send('question');
      const first = await agent.turn({ accept: false });
      expect(first.offer).toMatchObject({ kind: 'chat', attempt: 1, message: { text: 'question', ts: expect.any(Number) } });
      agent.restart();
      await agent.connect();
      const second = await agent.turn();
      expect(second.turn_id).toBe(first.turn_id);
      expect(second.offer.attempt).toBe(2);
      second.message('answer');
      second.end();
      await b.next('agent.idle');
    }));

  test.each([
    ['before its new process can be offered it', { install: true }, 1_000],
    ['while its new process has not said what it kept', {}, 1_000],
    ['before its new process comes', { install: true }, 0],
  ])('LNK33 TRN3 DEL2: a message is deleted %s: its turn is over, and the lane goes on', (_, how, after_ms) =>
    onStage(async ({ world, agent, a, b }) => {
      const { payload } = await a.send('never mind');
      await agent.turn({ accept: false });
      await world.advance(150);
      const remove = () => a.request('message.delete', { message_ids: [payload.message_id!] }, lane);
      if (after_ms === 0) await remove();
      agent.restart(how);
      await agent.connect();
      await world.advance(after_ms);
      if (after_ms > 0) await remove();
      await a.send('but this');
      await world.advance(10_000);
      const next = await agent.turn();
      expect(next.text).toBe('but this');
      next.end();
      await b.next((frame) => frame.type === 'agent.idle' && b.frames('agent.idle').length === 2);
    }),
  );

  test('LNK34 C75: a new process that knows nothing of the accepted turn: it ends as interrupted, and is not run again', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('half');
      await b.next('message.update');
      agent.restart();
      await agent.connect();
      expect((await b.next('message.stop')).payload).toMatchObject({ final_text: 'half', interrupted: true });
      await b.next('agent.idle');
      await world.advance(60_000);
      expect(agent.received.all.filter(({ type }) => type === 'turn.start')).toHaveLength(1);
      expect(b.frames('agent.idle')).toHaveLength(1);
    }));

  test('LNK31: a new process that goes on with its open turns loses none', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('half ');
      await b.next('message.update');
      agent.restart({ turns: true });
      await world.advance(2_000);
      await agent.connect();
      turn.delta('and half');
      turn.stop();
      turn.end();
      expect((await b.next('message.stop')).payload).toMatchObject({ final_text: 'half and half' });
      await b.next('agent.idle');
    }));

  test('LNK31: the edge of the agent dies: it comes back through another and goes on', () =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        a.cut();
        await a.join(world.edges[1]!.links.dial('/ws'));
        await a.send('question');
        const turn = await agent.turn();
        turn.start();
        turn.delta('one ');
        await b.next('message.update');
        world.edges[0]!.kill();
        turn.delta('two');
        turn.stop();
        turn.end();
        await world.advance(3_000);
        await agent.connect(world.edges[1]!.links.dial('/agent', { token: tenant.agent_token }));
        expect((await b.next('message.stop')).payload.final_text).toBe('one two');
        await b.next('agent.idle');
      },
      { unchecked: true },
    ));

  test.each([0, 1])(
    'O3 C75: session %i stands still while another goes on with the turn; what it hears when it thaws shows nothing older again',
    (which) =>
      onStage(async ({ world, tenant, agent, a, b }) => {
        stayAttached({ world, tenant, agent });
        await a.send('question');
        const turn = await agent.turn();
        turn.start();
        turn.delta('one ');
        await b.next('message.update');
        world.sessions[which]!.node.clock.freeze();
        for (let i = 0; i < 80; i++) {
          turn.delta(`more ${i} `);
          await world.advance(100);
        }
        world.sessions[which]!.node.clock.thaw();
        await world.advance(2_000);
        turn.stop();
        turn.end();
        expect((await b.next('message.stop')).payload.final_text).toMatch(/^one more 0 .* more 79 $/);
        await b.next('agent.idle');
      }),
  );

  test('LNK27: the same final sent twice in a turn is one message', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.message('the answer');
      turn.message('the answer');
      turn.end();
      await b.next('agent.idle');
      await world.advance(500);
      expect(b.frames((frame) => frame.payload.text === 'the answer')).toHaveLength(1);
      expect((await b.history(lane)).payload.messages).toHaveLength(2);
    }));
});

test('LNK25: an agent’s ids are its own: the same one in another turn is another message', () =>
  onStage(async ({ agent, a, b }) => {
    const seen = new Set<string>();
    for (const text of ['one', 'two']) {
      await a.send(text);
      const turn = await agent.turn();
      turn.message(`answer ${text}`, { message_id: 'always-the-same' });
      turn.end();
      seen.add((await b.next((frame) => frame.payload.role === 'assistant')).payload.message_id!);
      await b.next('agent.idle');
    }
    expect(seen.size).toBe(2);
    expect([...seen]).not.toContain('always-the-same');
  }));

test('LNK23 LNK24: deltas are put together; one whose offset does not fit does no harm', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    const id = turn.start();
    turn.delta('👨‍👩‍👧 ');
    await world.advance(150);
    turn.say('message.delta', { message_id: id, offset: 3, text: 'in the middle of a character' });
    turn.say('message.delta', { message_id: id, offset: 10_000, text: 'far away' });
    await world.advance(150);
    turn.delta('family');
    await world.advance(150);
    turn.stop();
    turn.end();
    expect((await b.next('message.stop')).payload.final_text).toBe('👨‍👩‍👧 family');
    for (const { payload } of b.frames('message.update')) expect('👨‍👩‍👧 family'.startsWith(payload.text!)).toBe(true);
    await b.next('agent.idle');
  }));

test('LNK29 MSG13: a command goes at once beside a running turn, with no busy or idle of its own', () =>
  onStage(async ({ world, agent, a, b }) => {
    agent.say('commands.catalog', { commands: [{ name: '/model', description: 'Switch model' }], rev: 1 });
    await world.advance(500);
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('long answer');
    await a.send('/model qwen');
    const command = await agent.turn();
    expect(command.offer).toMatchObject({ kind: 'command', message: { text: '/model qwen' } });
    command.message('switched');
    command.end();
    expect((await b.next((frame) => frame.payload.text === 'switched')).type).toBe('message');
    turn.stop();
    turn.end();
    await b.next('agent.idle');
    await world.advance(1_000);
    expect(b.frames('agent.busy')).toHaveLength(1);
    expect(b.frames('agent.idle')).toHaveLength(1);
  }));

test('LNK4: a frame of the agent that is no frame, or does not fit, harms nothing', () =>
  onStage(async ({ agent, a, b }) => {
    agent.raw('not JSON');
    agent.raw('{"v":1,"type":"message.stop","payload":{}}');
    await a.send('question');
    const turn = await agent.turn();
    turn.message('still here');
    turn.end();
    await b.next((frame) => frame.payload.text === 'still here');
    await b.next('agent.idle');
  }));

test('LNK29 O10: a turn that begins beside a command that still asks has the one busy and the one idle of the lane', () =>
  onStage(async ({ world, agent, a, b }) => {
    agent.say('commands.catalog', { commands: [{ name: '/model', description: 'Switch model' }] });
    await world.advance(100);
    await a.send('/model');
    const command = await agent.turn();
    command.picker('choice', { choices: [{ value: 'x', label: 'X' }] });
    await b.next('picker.choice');
    await a.send('a question meanwhile');
    const turn = await agent.turn();
    turn.message('an answer');
    turn.end();
    await b.next('agent.idle');
    command.end();
    await b.next('picker.closed');
    await world.advance(100);
    expect(b.frames('agent.idle')).toHaveLength(1);
  }));
