import type { PickerRow } from '@iris/store';
import { type AnyFrame, lane, onStage, type Stage, stayAttached, type TestTurn } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const ok = { type: 'ack', payload: { ok: true } };
const notFound = { type: 'error', payload: { code: 'not_found' } };
const unsupported = { type: 'error', payload: { code: 'unsupported', message: expect.stringMatching(/^value/) } };
const choices = [
  { value: 'low', label: 'Low' },
  { value: 'high', label: 'High', is_current: true },
];
const providers = [{ id: 'local', label: 'Local', models: [{ id: 'qwen/3', label: 'Qwen 3' }] }];
const idOf = (frame: AnyFrame) => frame.payload.picker_id!;

test('PIC1 PIC2 PIC7: the five kinds reach every device, under ids of ours, with all that they carry', () =>
  onStage(async ({ agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    const kinds = {
      model: { providers, current_model: 'qwen/3', current_provider: 'local', title: 'Model?' },
      choice: { choices, title: 'Effort', body: 'How hard?' },
      clarify: { question: 'Which one?', choices, allow_text: true, multi: true },
      approval: { choices, command: 'rm -rf /tmp/x', title: 'Allow?' },
      confirm: { choices: [{ value: 'y', label: 'Yes', style: 'danger' }], title: 'Sure?' },
    };
    const ids = new Set<string>();
    for (const [kind, payload] of Object.entries(kinds)) {
      const own = turn.picker(kind, { ...payload, novel: { deep: [1, null, { x: 'y' }] }, hint: 'later' });
      for (const device of [a, b]) {
        const shown = await device.next(`picker.${kind}`);
        expect(shown).toMatchObject({ ...lane, payload: { ...payload, novel: { deep: [1, null, { x: 'y' }] }, hint: 'later' } });
        expect(idOf(shown)).not.toBe(own);
        ids.add(idOf(shown));
      }
    }
    expect(ids.size).toBe(5);
    turn.end();
    await a.next('agent.idle');
  }));

test('PIC2 PIC14: the same name of the agent in two turns, and of two tenants, is two pickers', () =>
  onStage(async ({ world, agent, a, b }) => {
    const other = await world.tenant();
    const otherAgent = other.agent({ install_id: 'install-1' });
    await otherAgent.connect();
    const stranger = await other.join('stranger');
    const ids = new Set<string>();
    for (let i = 0; i < 2; i++) {
      await a.send(`q${i}`);
      const turn = await agent.turn();
      turn.picker('choice', { picker_id: 'p1', choices });
      ids.add(idOf(await b.next('picker.choice')));
      turn.end();
      await b.next('agent.idle');
    }
    await stranger.send('q');
    (await otherAgent.turn()).picker('choice', { picker_id: 'p1', choices });
    const theirs = idOf(await stranger.next('picker.choice'));
    ids.add(theirs);
    expect(ids.size).toBe(3);
    // A foreign one reads as one that never was.
    const foreign = await a.request('picker.select', { picker_id: theirs, value: 'low' });
    expect(foreign).toMatchObject(notFound);
    expect((await a.request('picker.select', { picker_id: 'p_never', value: 'low' })).payload).toEqual(foreign.payload);
    expect(await stranger.request('picker.select', { picker_id: theirs, value: 'low' })).toMatchObject(ok);
  }));

test('PIC8 PIC10 PIC13 LNK42: the first answer wins, the agent gets it once, every other device hears it', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const c = await tenant.join('watch', { edge: 1 });
    await a.send('question');
    const turn = await agent.turn();
    const own = turn.picker('choice', { choices });
    const picker_id = idOf(await b.next('picker.choice'));
    expect(await b.request('picker.select', { picker_id, value: 'high' })).toMatchObject(ok);
    for (const device of [a, c])
      expect(await device.next('picker.closed')).toMatchObject({ ...lane, payload: { picker_id, value: 'high' } });
    expect(await agent.next('picker.select')).toMatchObject({ turn_id: turn.turn_id, payload: { picker_id: own, value: 'high' } });
    for (const device of [a, b, c]) expect(await device.request('picker.select', { picker_id, value: 'low' })).toMatchObject(notFound);
    await world.advance(1_000);
    expect(b.frames('picker.closed')).toEqual([]);
    expect(agent.received.all.filter(({ type }) => type === 'picker.select')).toHaveLength(1);
    turn.end();
    await a.next('agent.idle');
    expect(a.frames('picker.closed')).toHaveLength(1);
  }));

test('PIC8: two devices at once, many times: one winner, and both learn which', () =>
  onStage(async ({ world, agent, a, b }) => {
    world.backbone.faults = { ...world.backbone.faults, socket_ms: [0, 5], bus_ms: [0, 5], store_ms: [0, 5] };
    await a.send('question');
    const turn = await agent.turn();
    for (let i = 0; i < 20; i++) {
      turn.picker('choice', { choices });
      const picker_id = idOf(await b.next('picker.choice'));
      await world.advance(20);
      const answers = await Promise.all([
        a.request('picker.select', { picker_id, value: 'low' }),
        b.request('picker.select', { picker_id, value: 'high' }),
      ]);
      expect(answers.map(({ type }) => type).sort()).toEqual(['ack', 'error']);
      const [winner, loser, value] = answers[0]!.type === 'ack' ? [a, b, 'low'] : [b, a, 'high'];
      expect((await loser.next('picker.closed')).payload).toEqual({ picker_id, value });
      expect((await agent.next('picker.select')).payload.value).toBe(value);
      expect(winner.frames((frame) => frame.type === 'picker.closed' && frame.payload.picker_id === picker_id)).toEqual([]);
    }
    turn.end();
    await world.advance(500);
  }));

test('PIC9 PIC15: only what is offered; of a question any text up to 4 KiB', () =>
  onStage(async ({ agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    const open = async (kind: string, payload: object) => {
      turn.picker(kind, payload as never);
      return idOf(await b.next(`picker.${kind}`));
    };
    const offered = [
      ['choice', { choices }, ['', 'medium', 'Low', 'low ', ['low'], []], 'low'],
      ['approval', { choices }, ['yes', ['low', 'high']], 'high'],
      ['confirm', { choices }, ['true'], 'low'],
      ['model', { providers }, ['qwen/3', 'local', 'local/', '/qwen/3', 'other/qwen/3', ['local/qwen/3']], 'local/qwen/3'],
    ] as const;
    for (const [kind, payload, wrong, right] of offered) {
      const picker_id = await open(kind, payload);
      for (const value of wrong) expect(await a.request('picker.select', { picker_id, value: value as never })).toMatchObject(unsupported);
      expect(await a.request('picker.select', { picker_id, value: right })).toMatchObject(ok);
      expect((await agent.next('picker.select')).payload.value).toBe(right);
    }
    for (const value of ['any text at all', 'é'.repeat(2_048), 'x'.repeat(4_096), '\ud83d\ude00', 'nul \ufffd']) {
      const picker_id = await open('clarify', { question: 'Well?' });
      expect(await a.request('picker.select', { picker_id, value })).toMatchObject(ok);
      expect((await agent.next('picker.select')).payload.value).toBe(value);
    }
    const picker_id = await open('clarify', { question: 'Well?', choices, multi: true });
    for (const value of ['x'.repeat(4_097), 'é'.repeat(2_049), '', 7, null, {}, undefined])
      expect(await a.request('picker.select', value === undefined ? { picker_id } : { picker_id, value: value as never })).toMatchObject(
        unsupported,
      );
    expect(await a.request('picker.select', { picker_id, value: ['low', 'high'] })).toMatchObject(ok);
    expect((await agent.next('picker.select')).payload.value).toEqual(['low', 'high']);
    turn.end();
    await a.next('agent.idle');
  }));

describe('NOT3 PSH2: an approval and a clarify come with a notification', () => {
  test.each([
    ['approval', { choices, command: 'rm -rf x', title: 'Allow?' }, { kind: 'approval', title: 'Allow?', body: 'rm -rf x' }],
    ['clarify', { question: 'Which?' }, { kind: 'clarify', title: 'Which?', body: 'Which?' }],
  ])('%s', (kind, payload, notification) =>
    onStage(async ({ tenant, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.picker(kind, payload as never);
      for (const device of [a, b]) expect(await device.next('notification')).toMatchObject({ ...lane, payload: notification });
      turn.picker('choice', { choices });
      turn.picker('confirm', { choices });
      turn.picker('model', { providers });
      await b.next('picker.model');
      expect(b.frames('notification')).toHaveLength(1);
      expect(tenant.log.filter(({ frame }) => frame.type === 'notification')).toHaveLength(1);
      turn.end();
      await a.next('agent.idle');
    }),
  );
});

describe('PIC11 C38: expiry', () => {
  test('when expires_at passes, the agent is told and devices get picker.closed; a late answer finds nothing', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      const own = turn.picker('approval', { choices, expires_at: world.time.now() + 60_000 });
      turn.busy('waiting_input');
      const shown = await b.next('picker.approval');
      expect(shown.payload.expires_at).toBe(world.time.now() - (world.time.now() - (shown.payload.expires_at as number)));
      await world.advance(59_000);
      expect(b.frames('picker.closed')).toEqual([]);
      await world.advance(3_000);
      for (const device of [a, b])
        expect(await device.next('picker.closed')).toMatchObject({ payload: { picker_id: idOf(shown), expired: true } });
      expect(await agent.next('picker.closed')).toMatchObject({ turn_id: turn.turn_id, payload: { picker_id: own, reason: 'expired' } });
      expect(await a.request('picker.select', { picker_id: idOf(shown), value: 'low' })).toMatchObject(notFound);
      const late = await tenant.join('late');
      await world.settle();
      expect(late.frames('picker.approval')).toEqual([]);
      turn.end('failed', { error: 'nobody approved' });
      await a.next('agent.idle');
      expect(a.frames('picker.closed')).toHaveLength(1);
      expect(agent.received.all.filter(({ type }) => type.startsWith('picker.'))).toHaveLength(1);
    }));

  test('what cannot be closed now, and however many there are of others, holds up none', () =>
    onStage(
      async ({ world, agent, a }) => {
        const stuck = await world.tenant();
        const expires_at = world.time.now() + 1_000;
        const row = (tenant_id: typeof stuck.tenant_id, n: number): PickerRow => ({
          tenant_id,
          picker_id: `p_${n}` as PickerRow['picker_id'],
          ...lane,
          chat_id: lane.chat_id as PickerRow['chat_id'],
          type: 'picker.choice',
          payload: { picker_id: `p_${n}`, choices },
          turn_id: null,
          agent_id: null,
          agent_picker_id: null,
          state: 'open',
          value: null,
          answered_by: null,
          expires_at,
          created_at: 1,
        });
        for (let n = 0; n < 250; n++) await world.store.pickers.open(row(stuck.tenant_id, n));
        const { pickers } = world.store;
        const { get } = pickers;
        Object.assign(pickers, {
          get: (tenant_id: string, picker_id: never) =>
            tenant_id === stuck.tenant_id ? Promise.reject(new Error('not now')) : get(tenant_id as never, picker_id),
        });
        await a.send('question');
        const turn = await agent.turn();
        turn.picker('choice', { choices, expires_at: expires_at + 1_000 });
        const shown = await a.next('picker.choice');
        await world.advance(8_000);
        expect(a.frames('picker.closed')).toMatchObject([{ payload: { picker_id: idOf(shown), expired: true } }]);
        Object.assign(pickers, { get });
        await world.advance(8_000);
        expect(await world.store.pickers.expired(world.time.now(), { limit: 9 })).toEqual([]);
        turn.end();
        await a.next('agent.idle');
      },
      { expected: ['*'] },
    ));

  test('at its very moment: an answer at or after expires_at is too late, also before anybody has swept', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      for (const early of [0, 1, 400]) {
        turn.picker('choice', { choices, expires_at: world.time.now() + 5_000 });
        const picker = await b.next('picker.choice');
        await world.advance((picker.payload.expires_at as number) - world.time.now() - early);
        const answer = await a.request('picker.select', { picker_id: idOf(picker), value: 'low' });
        const closed = await b.next('picker.closed');
        await world.advance(2_000);
        const told = agent.received.all.filter(
          ({ type, payload }) => /^picker\.(select|closed)$/.test(type) && payload.picker_id !== undefined,
        );
        if (early === 0) expect(answer).toMatchObject(notFound);
        expect(closed.payload).toEqual(
          answer.type === 'ack' ? { picker_id: idOf(picker), value: 'low' } : { picker_id: idOf(picker), expired: true },
        );
        // Answered or expired, never both.
        expect(told.at(-1)?.type).toBe(answer.type === 'ack' ? 'picker.select' : 'picker.closed');
      }
      turn.end();
      await world.advance(500);
      expect(agent.received.all.filter(({ type }) => /^picker\.(select|closed)$/.test(type))).toHaveLength(3);
      expect(b.frames('picker.closed')).toHaveLength(3);
    }));

  test('one without expires_at does not stay for ever', () =>
    onStage(
      async ({ world, agent, a, b }) => {
        await a.send('question');
        const turn = await agent.turn();
        turn.picker('confirm', { choices });
        const shown = await b.next('picker.confirm');
        expect(shown.payload).not.toHaveProperty('expires_at');
        await world.advance(9_000);
        expect(b.frames('picker.closed')).toEqual([]);
        await world.advance(3_000);
        expect(await b.next('picker.closed')).toMatchObject({ payload: { expired: true } });
        turn.end();
        await a.next('agent.idle');
      },
      { session_config: { picker_ms: 10_000 } },
    ));

  test('its lease is the store’s: the instance dies, and another lets it expire, once', () =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      stayAttached(stage);
      await a.send('question');
      const turn = await agent.turn();
      turn.picker('confirm', { choices, expires_at: world.time.now() + 20_000 });
      await b.next('picker.confirm');
      for (const session of world.sessions) session.kill();
      await world.startSession();
      await world.startSession();
      await world.advance(30_000);
      expect(b.frames('picker.closed')).toMatchObject([{ payload: { expired: true } }]);
      turn.end();
      await a.next('agent.idle');
    }));
});

describe('PIC16 C38: an agent that does nothing about a question that ran out', () => {
  const ask = async ({ world, agent, a, b }: Stage, busy = true) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.picker('approval', { choices, expires_at: world.time.now() + 10_000 });
    if (busy) turn.busy('waiting_input');
    const picker_id = idOf(await b.next('picker.approval'));
    await world.advance(12_000);
    await agent.next('picker.closed');
    return { turn, picker_id };
  };
  const isStopped = ({ agent }: Stage) => agent.received.all.some(({ type }) => type === 'agent.stop');

  test.each([
    ['that said that it waits', true],
    ['whose last word was the question', false],
  ])('%s: its turn is stopped, ends on every device, and the lane goes on', (_, busy) =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      const { turn, picker_id } = await ask(stage, busy);
      await a.send('and another thing');
      await world.advance(25_000);
      expect([isStopped(stage), b.frames('agent.idle')]).toEqual([false, []]);
      await world.advance(20_000);
      for (const device of [a, b]) {
        expect(device.frames('agent.idle')).toHaveLength(1);
        expect(device.frames('picker.closed')).toMatchObject([{ payload: { picker_id, expired: true } }]);
      }
      expect(agent.received.all.filter(({ type }) => type === 'agent.stop')).toMatchObject([{ turn_id: turn.turn_id }]);
      expect(await a.request('picker.select', { picker_id, value: 'low' })).toMatchObject(notFound);
      const next = await agent.turn();
      expect(next.text).toBe('and another thing');
      next.end();
      await b.next('agent.idle');
    }),
  );

  test('a stop that it follows ends the turn once, with what it says', () =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      const { turn } = await ask(stage);
      await world.advance(30_000);
      await agent.next('agent.stop');
      turn.message('then not');
      turn.end('cancelled');
      await b.next('agent.idle');
      await world.advance(15_000);
      expect(a.frames('agent.idle')).toHaveLength(1);
      expect(a.frames(({ payload }) => payload.text === 'then not')).toHaveLength(1);
    }));

  const words: [string, (turn: TestTurn) => unknown][] = [
    ['that it works', (turn) => turn.busy('processing')],
    ['a message', (turn) => turn.message('so be it')],
    ['a tool', (turn) => turn.toolStart(1, 'terminal')],
    ['another question, which may be answered for a day', (turn) => turn.picker('choice', { choices })],
  ];
  test.each(words)('who goes on is let be for as long as it takes: %s', (_, say) =>
    onStage(async (stage) => {
      const { world, b } = stage;
      const { turn } = await ask(stage);
      await world.advance(20_000);
      say(turn);
      await world.advance(300_000);
      expect([isStopped(stage), b.frames('agent.idle')]).toEqual([false, []]);
      turn.end();
      await b.next('agent.idle');
    }),
  );

  test('so is who streams on in a message of before, whatever becomes of the instance that heard it; who only types is not', () =>
    onStage(
      async (stage) => {
        const { world, agent, a, b } = stage;
        stayAttached(stage);
        await a.send('question');
        const turn = await agent.turn();
        turn.start();
        turn.delta('Let me see');
        turn.busy('waiting_input');
        turn.picker('approval', { choices, expires_at: world.time.now() + 10_000 });
        await world.advance(15_000);
        turn.delta(', then without.');
        await world.advance(1_000);
        for (const session of world.sessions) session.kill();
        await world.startSession();
        await world.advance(60_000);
        expect([isStopped(stage), b.frames('agent.idle')]).toEqual([false, []]);
        turn.picker('approval', { choices, expires_at: world.time.now() + 10_000 });
        for (let n = 0; n < 20; n++) {
          turn.typing();
          await world.advance(3_000);
        }
        expect(b.frames('message.stop')).toMatchObject([{ payload: { final_text: 'Let me see, then without.' } }]);
        expect(b.frames('agent.idle')).toHaveLength(1);
      },
      { sessions: 1 },
    ));

  test('whose instance died, or whose link broke meanwhile, has its time from when it can be heard, and no longer', () =>
    onStage(async (stage) => {
      const { world, agent, a } = stage;
      stayAttached(stage);
      await ask(stage);
      for (const session of world.sessions) session.kill();
      await world.startSession();
      await world.startSession();
      await world.advance(28_000);
      expect(isStopped(stage)).toBe(false);
      agent.cut();
      await world.advance(20_000);
      expect(isStopped(stage)).toBe(false);
      await world.advance(30_000);
      expect(a.frames('agent.idle')).toHaveLength(1);
    }));

  test('what an instance hears first of a turn that it has just taken over counts', () =>
    onStage(
      async (stage) => {
        const { world, b } = stage;
        stayAttached(stage);
        const { turn } = await ask(stage);
        for (const session of world.sessions) session.kill();
        await world.startSession();
        turn.message('so be it');
        await world.advance(120_000);
        expect([isStopped(stage), b.frames('agent.idle')]).toEqual([false, []]);
        turn.end();
        await b.next('agent.idle');
      },
      { sessions: 1 },
    ));

  test('a word that is stored only at a later try counts as well, with whoever takes the turn over', () =>
    onStage(
      async (stage) => {
        const { world, b } = stage;
        stayAttached(stage);
        const { turn } = await ask(stage);
        world.backbone.failStore = true;
        turn.message('so be it');
        await world.advance(3_000);
        world.backbone.failStore = false;
        await b.next(({ type, payload }) => type === 'message' && payload.text === 'so be it');
        for (const session of world.sessions) session.kill();
        await world.startSession();
        await world.advance(120_000);
        expect([isStopped(stage), b.frames('agent.idle')]).toEqual([false, []]);
        turn.end();
        await b.next('agent.idle');
      },
      { sessions: 1, expected: ['*'] },
    ));

  test('a question that runs out while instances come and go is one like any other', () =>
    onStage(
      async (stage) => {
        const { world, agent, a, b } = stage;
        stayAttached(stage);
        await a.send('question');
        const turn = await agent.turn();
        turn.picker('approval', { choices, expires_at: world.time.now() + 10_000 });
        turn.busy('waiting_input');
        await b.next('picker.approval');
        // What it knew of the tenant goes with each instance that comes, and it has it again when that has gone.
        const others = [await world.startSession(), await world.startSession(), await world.startSession()];
        await world.advance(3_000);
        for (const session of others) session.kill();
        await world.advance(90_000);
        expect(b.frames('picker.closed')).toMatchObject([{ payload: { expired: true } }]);
        expect(isStopped(stage)).toBe(true);
        expect(b.frames('agent.idle')).toHaveLength(1);
      },
      { sessions: 1 },
    ));

  test('what it does beside the question is not held against it', () =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      await a.send('question');
      const turn = await agent.turn();
      turn.picker('choice', { choices, expires_at: world.time.now() + 10_000 });
      await world.advance(5_000);
      turn.toolStart(1, 'terminal');
      await world.advance(120_000);
      expect([isStopped(stage), b.frames('agent.idle')]).toEqual([false, []]);
      turn.end();
      await b.next('agent.idle');
    }));
});

describe('PIC12: the open pickers of a turn that ends close', () => {
  test.each(['completed', 'failed', 'cancelled'])('by the agent, %s', (outcome) =>
    onStage(async ({ agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.picker('approval', { choices });
      const picker_id = idOf(await b.next('picker.approval'));
      turn.end(outcome);
      expect(await b.next('picker.closed')).toMatchObject({ payload: { picker_id } });
      await b.next('agent.idle');
      const order = b.frames(['picker.closed', 'agent.idle']).map(({ type }) => type);
      expect(order).toEqual(['picker.closed', 'agent.idle']);
      expect(await a.request('picker.select', { picker_id, value: 'low' })).toMatchObject(notFound);
    }),
  );

  test('by a stop: at once, and the agent is told', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      const own = turn.picker('approval', { choices });
      const picker_id = idOf(await b.next('picker.approval'));
      await a.request('agent.stop', {}, lane);
      expect(await b.next('picker.closed')).toMatchObject({ payload: { picker_id, reason: 'turn_ended' } });
      expect(await agent.next('picker.closed')).toMatchObject({ payload: { picker_id: own, reason: 'turn_ended' } });
      expect(await b.request('picker.select', { picker_id, value: 'low' })).toMatchObject(notFound);
      await world.advance(15_000);
      await b.next('agent.idle');
      expect(b.frames('picker.closed')).toHaveLength(1);
      expect(b.frames('agent.idle')).toHaveLength(1);
      turn.end();
    }));

  test('by the loss of the agent', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.picker('clarify', { question: 'Well?' });
      await b.next('picker.clarify');
      agent.cut();
      await world.advance(35_000);
      expect(await b.next('picker.closed')).toMatchObject({ payload: { reason: 'turn_ended' } });
      await b.next('agent.idle');
      await agent.connect();
      turn.picker('choice', { choices });
      await world.advance(2_000);
      expect(b.frames('picker.choice')).toEqual([]);
    }));

  test('an answer and the end at once: one of them wins', () =>
    onStage(async ({ world, agent, a, b }) => {
      world.backbone.faults = { ...world.backbone.faults, socket_ms: [0, 6], bus_ms: [0, 6], store_ms: [0, 6] };
      for (let i = 0; i < 15; i++) {
        await a.send(`q${i}`);
        const turn = await agent.turn();
        const own = turn.picker('choice', { choices });
        const picker_id = idOf(await b.next('picker.choice'));
        const asked = a.request('picker.select', { picker_id, value: 'low' });
        await world.advance(i % 8);
        turn.end();
        const answer = await asked;
        await b.next('agent.idle');
        await world.advance(200);
        const closed = b.frames((frame) => frame.type === 'picker.closed' && frame.payload.picker_id === picker_id);
        expect(closed).toHaveLength(1);
        expect('value' in closed[0]!.payload).toBe(answer.type === 'ack');
        const selects = agent.received.all.filter(({ type, payload }) => type === 'picker.select' && payload.picker_id === own);
        expect(selects).toHaveLength(answer.type === 'ack' ? 1 : 0);
      }
    }));
});

describe('HEL23 SYN6 SYN7: devices that come later', () => {
  test('are told the open pickers after hello.ack, once, and not those that were answered', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const away = await tenant.join('away', { caps: { cursors: true } });
      away.cut();
      await a.send('question');
      const turn = await agent.turn();
      turn.picker('choice', { choices, title: 'answered' });
      turn.picker('confirm', { choices, title: 'open' });
      const answered = idOf(await b.next('picker.choice'));
      const open = idOf(await b.next('picker.confirm'));
      await b.request('picker.select', { picker_id: answered, value: 'low' });
      const late = await tenant.join('late', { edge: 1 });
      await away.join();
      for (const device of [late, away]) {
        await device.next('picker.confirm');
        expect(device.frames('picker.confirm')).toMatchObject([{ ...lane, payload: { picker_id: open, title: 'open' } }]);
        await device.sync(device === away ? 0 : undefined);
        await world.settle();
        expect(device.frames('picker.confirm')).toHaveLength(1);
        expect(device.frames('picker.choice')).toEqual([]);
      }
      expect(away.frames('picker.closed')).toMatchObject([{ payload: { picker_id: answered, value: 'low' } }]);
      // And can answer.
      expect(await late.request('picker.select', { picker_id: open, value: 'high' })).toMatchObject(ok);
      expect(await away.next((frame) => frame.type === 'picker.closed' && frame.payload.picker_id === open)).toMatchObject({
        payload: { value: 'high' },
      });
      turn.end();
      await a.next('agent.idle');
    }));

  test('C37: the session service is restarted: the picker stands, is answered, and the turn goes on', () =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      stayAttached(stage);
      await a.send('question');
      const turn = await agent.turn();
      const own = turn.picker('approval', { choices });
      turn.busy('waiting_input');
      const picker_id = idOf(await b.next('picker.approval'));
      for (const session of world.sessions) session.kill();
      await world.startSession();
      await world.startSession();
      await world.advance(3_000);
      expect(await b.request('picker.select', { picker_id, value: 'high' })).toMatchObject(ok);
      expect((await agent.next('picker.select')).payload).toMatchObject({ picker_id: own, value: 'high' });
      expect(await a.next('picker.closed')).toMatchObject({ payload: { picker_id, value: 'high' } });
      turn.busy('processing');
      turn.end();
      await a.next('agent.idle');
    }));

  test('PIC8 ENV24: the instance dies with the answer: it counts once', () =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      stayAttached(stage);
      await a.send('question');
      const turn = await agent.turn();
      for (const wait of [15, 35, 55, 75]) {
        const own = turn.picker('choice', { choices });
        const picker_id = idOf(await b.next('picker.choice'));
        world.backbone.faults = { ...world.backbone.faults, store_ms: [10, 10], outbox_ms: [10, 10] };
        const asked = b.request('picker.select', { picker_id, value: 'low' });
        await world.advance(wait);
        for (const session of world.sessions) session.kill();
        world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 0], outbox_ms: [0, 0] };
        await world.startSession();
        expect(await asked).toMatchObject(ok);
        expect(await a.next('picker.closed')).toMatchObject({ payload: { picker_id, value: 'low' } });
        await agent.next((frame) => frame.type === 'picker.select' && frame.payload.picker_id === own);
      }
      await world.advance(2_000);
      expect(a.frames('picker.closed')).toHaveLength(4);
      expect(agent.received.all.filter(({ type }) => type === 'picker.select')).toHaveLength(4);
      turn.end();
      await a.next('agent.idle');
    }));
});

test('PIC13 ENV20: without an id it acts the same and is answered by nothing', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.picker('choice', { choices });
    const picker_id = idOf(await b.next('picker.choice'));
    b.say('picker.select', { picker_id, value: 'low' });
    await a.next('picker.closed');
    await world.settle();
    expect(b.frames('ack')).toEqual([]);
    turn.end();
    await a.next('agent.idle');
  }));

test('LNK30: while a question with allow_text is open, the lane’s next plain message answers it, and starts no turn', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    const own = turn.picker('clarify', { question: 'Which city?', allow_text: true });
    const picker_id = idOf(await b.next('picker.clarify'));
    const { payload } = await a.request('channel.create', { name: 'other' });
    await a.send('elsewhere', { chat_id: payload.chat_id! });
    expect((await agent.turn()).text).toBe('elsewhere');
    const echo = await b.send('Rome', { client_ref: 'r' });
    expect(echo).toMatchObject({ type: 'message', payload: { text: 'Rome' } });
    expect((await agent.next('picker.select')).payload).toMatchObject({ picker_id: own, value: 'Rome' });
    for (const device of [a, b]) expect(await device.next('picker.closed')).toMatchObject({ payload: { picker_id, value: 'Rome' } });
    expect(await b.next('read.receipt')).toMatchObject({ payload: { message_id: echo.payload.message_id } });
    // Again it is that message, and no other.
    expect(await b.send('Rome', { client_ref: 'r' })).toMatchObject({ type: 'message', payload: echo.payload });
    await b.send('and a new matter');
    await world.advance(1_000);
    expect(agent.turns.size).toBe(2);
    turn.end();
    const next = await agent.turn();
    expect(next.text).toBe('and a new matter');
    next.end();
    for (const one of agent.turns.values()) one.end();
    await world.advance(500);
    expect(tenant.log.filter(({ frame }) => frame.payload.text === 'Rome')).toHaveLength(1);
  }));
