import { type AnyFrame, lane, onStage, stayAttached, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const about = (device: TestDevice, message_id: string) =>
  device.frames((frame) => frame.payload.message_id === message_id && frame.type !== 'message.deleted');
const texts = (frame: AnyFrame) => frame.payload.messages?.map(({ text }) => text);

describe('message.delete', () => {
  test('DEL1 DEL2 DEL3 ENV25: answered by message.deleted, told to every device and the agent; gone from history and outbox', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const sent = [];
      for (const text of ['one', 'two', 'three']) sent.push((await a.send(text)).payload.message_id!);
      const message_ids = [sent[1]!, 'm_never', sent[0]!];
      const deleted = await b.request('message.delete', { message_ids }, lane);
      expect(deleted).toMatchObject({ type: 'message.deleted', ...lane, id: expect.any(Number), payload: { message_ids } });
      expect(await a.next('message.deleted')).toMatchObject({ ...lane, payload: { message_ids } });
      expect(b.frames('message.deleted')).toHaveLength(1);
      expect((await agent.next('message.deleted')).payload.message_ids).toEqual(expect.arrayContaining([sent[0], sent[1]]));
      expect(texts(await a.history(lane))).toEqual(['three']);
      for (const id of sent.slice(0, 2)) expect(await world.store.messages.get(tenant.tenant_id, id as never)).toBeUndefined();
      const page = await world.backbone.outbox.read(tenant.tenant_id, 0, { limit: 100 });
      const left = page.entries.map(({ body }) => Buffer.from(body).toString());
      expect(left.some((text) => text.includes('"one"') || text.includes('"two"'))).toBe(false);
      (await agent.turn()).end();
      (await agent.turn()).end();
      await world.advance(200);
    }));

  test('DEL1: again it is answered the same, also of ids that were never there', () =>
    onStage(async ({ a, b }) => {
      const { payload } = await a.send('one');
      for (let i = 0; i < 2; i++) {
        const message_ids = [payload.message_id!];
        expect(await a.request('message.delete', { message_ids }, lane)).toMatchObject({
          type: 'message.deleted',
          payload: { message_ids },
        });
        await b.next('message.deleted');
      }
      for (const message_ids of [['x'], ['__proto__', 'constructor'], [payload.message_id!, payload.message_id!]]) {
        const answer = await a.request('message.delete', { message_ids }, lane);
        expect(answer.payload.message_ids).toEqual([...new Set(message_ids)]);
        await b.next('message.deleted');
      }
    }));

  test('DEL7 ENV9 ENV14: unknown lanes and bad lists', () =>
    onStage(async ({ world, tenant, a }) => {
      const { payload } = await a.send('stays');
      const message_ids = [payload.message_id!];
      const foreign = await (await world.tenant()).join('stranger');
      const theirs = await foreign.request('channel.create', { name: 'theirs' });
      const unknown = await a.request('message.delete', { message_ids }, { chat_id: 'android:chan_77' });
      expect(unknown).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      expect((await a.request('message.delete', { message_ids }, { chat_id: theirs.payload.chat_id! })).payload).toEqual(unknown.payload);
      expect((await a.request('message.delete', { message_ids })).payload.code).toBe('unsupported');
      for (const bad of [[], [''], [7], 'x', undefined, Array.from({ length: 1_001 }, (_, i) => `m${i}`), ['x'.repeat(129)]])
        expect(await a.request('message.delete', bad === undefined ? {} : { message_ids: bad as never }, lane)).toMatchObject({
          type: 'error',
          payload: { code: 'unsupported', message: expect.stringMatching(/^message_ids/) },
        });
      expect(texts(await a.history(lane))).toEqual(['stays']);
      expect(tenant.log.filter(({ frame }) => frame.type === 'message.deleted')).toEqual([]);
    }));

  test('DEL1 C119: one that stands or runs in another lane stays, and is not named', () =>
    onStage(async ({ world, agent, a, b }) => {
      const stranger = await (await world.tenant()).join('stranger');
      const { payload } = await a.request('channel.create', { name: 'other' });
      const elsewhere = { chat_id: payload.chat_id! };
      const kept = await a.send('kept', elsewhere);
      const turn = await agent.turn();
      turn.start();
      turn.delta('running');
      const running = (await b.next('message.start')).payload.message_id!;
      const message_ids = [kept.payload.message_id!, running];
      expect((await a.request('message.delete', { message_ids }, lane)).payload.message_ids).toEqual([]);
      // Of another tenant they never were.
      expect((await stranger.request('message.delete', { message_ids }, lane)).payload.message_ids).toEqual(message_ids);
      turn.delta(' on');
      turn.stop();
      turn.end();
      expect((await b.next('message.stop')).payload).toMatchObject({ message_id: running, final_text: 'running on' });
      expect(texts(await a.history(elsewhere))).toEqual(['kept', 'running on']);
      await b.next('agent.idle');
    }));

  test('DEL6 SYN6 C20: a device that was away gets nothing of the message, and learns that it went', () =>
    onStage(async ({ tenant, agent, a, b }) => {
      const away = await tenant.join('away', { caps: { cursors: true } });
      away.cut();
      const { payload } = await a.send('secret canary');
      const turn = await agent.turn();
      turn.start();
      turn.delta('canary too');
      const streamed = (await b.next('message.start')).payload.message_id!;
      turn.stop();
      const beat = await b.next('message.stop');
      turn.commentary('canary three');
      const commented = (await b.next('commentary')).payload.message_id!;
      turn.end();
      await b.next('agent.idle');
      await b.request('read.receipt', { message_id: payload.message_id! }, lane);
      const message_ids = [payload.message_id!, streamed, commented];
      await a.request('message.delete', { message_ids }, lane);
      expect(beat.payload.message_id).toBe(streamed);
      await away.join();
      await away.sync();
      expect(await away.next('message.deleted')).toMatchObject({ payload: { message_ids } });
      expect(away.frames().filter((frame) => JSON.stringify(frame).includes('canary'))).toEqual([]);
      for (const id of message_ids) expect(about(away, id)).toEqual([]);
      // Who has it live already drops it, and is not told of it again.
      const before = about(b, streamed).length;
      await b.sync(0);
      expect(about(b, streamed)).toHaveLength(before);
      expect(texts(await away.history(lane))).toEqual([]);
    }));

  test('DEL6 ENV24: the instance dies with it: whoever was away learns of it all the same', () =>
    onStage(async (stage) => {
      const { world, tenant, a, b } = stage;
      stayAttached(stage);
      const away = await tenant.join('away');
      for (const wait of [15, 35, 55, 75, 95, 130]) {
        const { payload } = await a.send(`gone after ${wait}`);
        await world.advance(100);
        away.cut();
        world.backbone.faults = { ...world.backbone.faults, store_ms: [10, 10], outbox_ms: [10, 10] };
        const deleting = a.request('message.delete', { message_ids: [payload.message_id!] }, lane);
        await world.advance(wait);
        for (const session of world.sessions) session.kill();
        world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 0], outbox_ms: [0, 0] };
        await world.startSession();
        expect(await deleting).toMatchObject({ type: 'message.deleted', payload: { message_ids: [payload.message_id] } });
        await b.next((frame) => frame.type === 'message.deleted' && frame.payload.message_ids![0] === payload.message_id);
        await away.join();
        await away.sync(0);
        await away.next((frame) => frame.type === 'message.deleted' && frame.payload.message_ids![0] === payload.message_id);
        const from = away.received.all.findLastIndex(({ frame }) => frame.type === 'hello.ack');
        const heard = away.received.all.slice(from).map(({ frame }) => frame);
        expect(heard.filter((frame) => frame.type === 'message' && frame.payload.message_id === payload.message_id)).toEqual([]);
      }
      expect(texts(await a.history(lane))).toEqual([]);
    }));

  test('DEL1: a thousand at once', () =>
    onStage(
      async ({ a, b }) => {
        const ids = [];
        for (let i = 0; i < 60; i++) ids.push((await a.send(`m${i}`)).payload.message_id!);
        const message_ids = [...ids, ...Array.from({ length: 940 }, (_, i) => `m_unknown_${i}`)];
        expect((await a.request('message.delete', { message_ids }, lane)).payload.message_ids).toEqual(message_ids);
        await b.next('message.deleted');
        expect(texts(await b.history(lane))).toEqual([]);
      },
      { agent: false, quotas: { waiting_per_lane: 1_000 } },
    ));
});

describe('DEL5: a message that runs', () => {
  test('after message.deleted nothing of it is sent or stored, and the turn goes on', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const d = await tenant.join('pieces', { edge: 1, caps: { delta: true, reasoning: true } });
      await a.send('question');
      const turn = await agent.turn();
      const first = turn.start();
      turn.delta('to be deleted');
      turn.reason('why');
      const id = (await b.next('message.start')).payload.message_id!;
      await b.next('message.update');
      await b.request('message.delete', { message_ids: [id] }, lane);
      for (const device of [a, b, d]) {
        const at = device.received.all.findIndex(({ frame }) => frame.type === 'message.deleted');
        expect(at === -1).toBe(false);
      }
      turn.delta(', still going', first);
      turn.reason('still', first);
      await world.advance(300);
      turn.stop({ message_id: first });
      const second = turn.start();
      turn.delta('another', second);
      turn.stop({ message_id: second });
      turn.end();
      for (const device of [a, b, d]) {
        await device.next('agent.idle');
        const after = device.received.all.slice(device.received.all.findIndex(({ frame }) => frame.type === 'message.deleted') + 1);
        expect(after.filter(({ frame }) => frame.payload.message_id === id)).toEqual([]);
        expect(device.frames('agent.idle')).toHaveLength(1);
      }
      expect(texts(await a.history(lane))).toEqual(['question', 'another']);
      expect(await world.store.messages.get(tenant.tenant_id, id as never)).toBeUndefined();
    }));

  test('several at once, for devices that lag and get updates later', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      const slow = await tenant.join('slow', { edge: 1 });
      await a.send('question');
      const turn = await agent.turn();
      const running = [turn.start(), turn.start(), turn.start()];
      for (const id of running) turn.delta('x', id);
      await slow.next((frame) => frame.type === 'message.update');
      await world.advance(300);
      slow.pause();
      for (let i = 0; i < 100; i++) turn.commentary('y'.repeat(4_000));
      for (const id of running) turn.delta(' more', id);
      await world.advance(500);
      const ids = slow.frames('message.start').map(({ payload }) => payload.message_id!);
      expect(ids).toHaveLength(3);
      await a.request('message.delete', { message_ids: ids.slice(0, 2) }, lane);
      slow.resume();
      await slow.next('message.deleted');
      await world.advance(6_000);
      const at = slow.received.all.findIndex(({ frame }) => frame.type === 'message.deleted');
      const after = slow.received.all.slice(at + 1).map(({ frame }) => frame);
      expect(after.filter(({ payload }) => ids.slice(0, 2).includes(payload.message_id!))).toEqual([]);
      expect(after.filter(({ type, payload }) => type === 'message.update' && payload.message_id === ids[2])).toHaveLength(1);
      for (const id of running) turn.stop({ message_id: id });
      turn.end();
      await slow.next('agent.idle');
    }));

  test('the agent is lost, or comes back with it: it stays deleted', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('to be deleted');
      const id = (await b.next('message.start')).payload.message_id!;
      await b.next('message.update');
      agent.cut();
      await a.request('message.delete', { message_ids: [id] }, lane);
      await world.advance(2_000);
      // Its snapshot says it again.
      await agent.connect();
      await world.advance(1_000);
      turn.delta(' and more');
      await world.advance(1_000);
      agent.cut();
      await world.advance(35_000);
      await b.next('agent.idle');
      await agent.connect();
      // A late final.
      turn.stop({ final_text: 'final' });
      await world.advance(2_000);
      const at = b.received.all.findIndex(({ frame }) => frame.type === 'message.deleted');
      expect(b.received.all.slice(at + 1).filter(({ frame }) => frame.payload.message_id === id)).toEqual([]);
      expect(texts(await a.history(lane))).toEqual(['question']);
    }));

  test('STR8: an interrupted one that is deleted before its late final comes', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('half');
      const id = (await b.next('message.start')).payload.message_id!;
      agent.cut();
      await world.advance(35_000);
      await b.next('message.stop');
      await a.request('message.delete', { message_ids: [id] }, lane);
      await agent.connect();
      turn.stop({ final_text: 'whole' });
      await world.advance(2_000);
      expect(b.frames((frame) => frame.payload.late === true)).toEqual([]);
      expect(texts(await a.history(lane))).toEqual(['question']);
    }));

  test('HEL22: a device that joins is told nothing of it', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('gone');
      const id = (await b.next('message.start')).payload.message_id!;
      await a.request('message.delete', { message_ids: [id] }, lane);
      const late = await tenant.join('late');
      await world.settle();
      expect(about(late, id)).toEqual([]);
      expect(late.frames('agent.busy')).toHaveLength(1);
      turn.end();
      await late.next('agent.idle');
      expect(about(late, id)).toEqual([]);
    }));
});

describe('DEL2: a message that waits for its turn', () => {
  test('starts none, and those behind it do not wait for it', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('first');
      const first = await agent.turn();
      const ids = [];
      for (const text of ['gone', 'gone too', 'stays']) ids.push((await a.send(text)).payload.message_id!);
      await a.request('message.delete', { message_ids: ids.slice(0, 2) }, lane);
      first.end();
      const next = await agent.turn();
      expect(next.text).toBe('stays');
      next.end();
      await b.next((frame) => frame.type === 'agent.idle' && b.frames('agent.idle').length === 2);
      await world.advance(2_000);
      expect(agent.turns.size).toBe(2);
      const told = agent.story.filter(({ way, frame }) => way === 'in' && JSON.stringify(frame).includes('gone'));
      expect(told).toEqual([]);
    }));

  test('also while no agent is attached', () =>
    onStage(
      async ({ world, agent, a, b }) => {
        const { payload } = await a.send('gone');
        await a.send('stays');
        await a.request('message.delete', { message_ids: [payload.message_id!] }, lane);
        await world.advance(3_000);
        await agent.connect();
        const turn = await agent.turn();
        expect(turn.text).toBe('stays');
        turn.end();
        await b.next('agent.idle');
        expect(JSON.stringify(agent.story)).not.toContain('gone');
      },
      { agent: false },
    ));

  test('or was sent to an agent that has gone before it heard of it', () =>
    onStage(async ({ world, agent, a, b }) => {
      agent.pause();
      const { payload } = await a.send('gone');
      await a.send('stays');
      await world.advance(100);
      agent.cut();
      await world.advance(20_000);
      await a.request('message.delete', { message_ids: [payload.message_id!] }, lane);
      agent.restart();
      await agent.connect();
      const turn = await agent.turn();
      expect(turn.text).toBe('stays');
      turn.end();
      await b.next((frame) => frame.type === 'agent.idle');
      expect(JSON.stringify(agent.story)).not.toContain('gone');
    }));
});

test('LNK44 DEL1: an agent deletes its own message by its own name, and a person’s by ours', () =>
  onStage(async ({ agent, a, b }) => {
    const { payload } = await a.send('question');
    const turn = await agent.turn();
    const own = turn.message('oops');
    const said = (await b.next((frame) => frame.payload.text === 'oops')).payload.message_id!;
    turn.say('message.delete', { message_ids: [own, payload.message_id!] });
    expect((await b.next('message.deleted')).payload.message_ids).toEqual([said, payload.message_id]);
    expect(texts(await a.history(lane))).toEqual([]);
    turn.end();
    await a.next('agent.idle');
  }));

test('MSG4: a send whose message was deleted is not said again under its client_ref', () =>
  onStage(async ({ agent, a, b }) => {
    const { payload } = await a.send('once', { client_ref: 'r' });
    (await agent.turn()).end();
    await b.next('agent.idle');
    await b.request('message.delete', { message_ids: [payload.message_id!] }, lane);
    expect(await a.send('once', { client_ref: 'r' })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    expect(texts(await a.history(lane))).toEqual([]);
    expect(b.frames('message')).toHaveLength(1);
  }));

test('DEL3 LNK41 LNK25: the agent is told by our ids, and of its own messages by its own names; its answer is taken', () =>
  onStage(async ({ world, agent, a, b }) => {
    const question = await a.send('question');
    const turn = await agent.turn();
    const whole = turn.message('whole');
    const streamed = turn.start();
    turn.delta('streamed');
    turn.stop({ message_id: streamed });
    const running = turn.start();
    turn.delta('running');
    await b.next((frame) => frame.type === 'message.update' && frame.payload.text === 'running');
    const ids = [
      question.payload.message_id!,
      b.frames((frame) => frame.payload.text === 'whole')[0]!.payload.message_id!,
      b.frames('message.stop')[0]!.payload.message_id!,
      b.frames('message.start').at(-1)!.payload.message_id!,
    ];
    await a.request('message.delete', { message_ids: [...ids, 'm_never'] }, lane);
    const told = await agent.next('message.deleted');
    expect(told).toMatchObject({ ...lane, seq: expect.any(Number) });
    expect(told.payload).toEqual({
      message_ids: [...ids, 'm_never'],
      own_ids: { [ids[1]!]: whole, [ids[2]!]: streamed, [ids[3]!]: running },
    });
    // Devices are told in our words alone.
    expect((await b.next('message.deleted')).payload).toEqual({ message_ids: [...ids, 'm_never'] });
    agent.say('ack', { removed: [whole, streamed], missing: ['m_never'] }, { id: 'answer' });
    turn.end();
    await b.next('agent.idle');
    await world.advance(500);
    expect(agent.received.all.filter(({ type }) => type === 'error')).toEqual([]);
  }));

test('DEL3 LNK7: an agent that is away is told when it comes back, also of what was cut short meanwhile', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    const own = turn.start();
    turn.delta('half');
    await b.next('message.update');
    agent.cut();
    await world.advance(35_000);
    const cut = await b.next('message.stop');
    const { payload } = await a.send('another');
    await a.request('message.delete', { message_ids: [cut.payload.message_id!, payload.message_id!] }, lane);
    await agent.connect();
    expect((await agent.next('message.deleted')).payload).toEqual({
      message_ids: [cut.payload.message_id, payload.message_id],
      own_ids: { [cut.payload.message_id!]: own },
    });
    await world.advance(2_000);
    expect(agent.turns.size).toBe(1);
  }));
