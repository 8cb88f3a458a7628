import { type AnyFrame, lane, onStage, stayAttached, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const notFound = { type: 'error', payload: { code: 'not_found' } };
const inLane = (device: TestDevice, chat_id: string, thread_id?: string) => (frame: AnyFrame) =>
  frame.chat_id === chat_id && (thread_id === undefined || frame.thread_id === thread_id) && device !== undefined;
/** Frames of a channel that came after its deletion. */
const afterwards = (device: TestDevice, chat_id: string) => {
  const at = device.received.all.findIndex(({ frame }) => frame.type === 'channel.deleted');
  expect(at).toBeGreaterThanOrEqual(0);
  return device.received.all.slice(at + 1).filter(({ frame, source }) => source !== 'answer' && inLane(device, chat_id)(frame));
};
const options = { choices: [{ value: 'yes', label: 'Yes' }] };

test('CHA7 CHA12 CHA9 C117: a channel with threads, an open picker and running turns goes with everything', () =>
  onStage(async (stage) => {
    const { world, tenant, agent, a, b } = stage;
    const away = await tenant.join('away', { caps: { cursors: true } });
    away.cut();
    const { payload } = await a.request('channel.create', { name: 'canary' });
    const chat_id = payload.chat_id!;
    const thread = await a.send('canary thread', { chat_id, auto_thread: true });
    const flat = await a.send('canary flat', { chat_id });
    await a.send('canary waits', { chat_id });
    const turns = [await agent.turn(), await agent.turn()];
    for (const turn of turns) {
      turn.start();
      turn.delta('canary answer');
      turn.reason('canary thought');
      turn.toolStart(0, 'terminal', { preview: 'canary tool' });
      turn.typing();
    }
    turns[0]!.picker('approval', { title: 'canary?', ...options });
    const picker = await b.next('picker.approval');
    await b.request('read.receipt', { message_id: flat.payload.message_id! }, { chat_id });
    await world.advance(300);

    const deleted = await a.request('channel.delete', {}, { chat_id });
    expect(deleted).toMatchObject({ type: 'channel.deleted', id: expect.any(Number), chat_id, thread_id: null });
    expect(deleted.payload).toEqual({ chat_id });
    expect((await b.next('channel.deleted')).payload).toEqual({ chat_id });
    for (const turn of turns) expect(turn.stopped).toBe(true);
    expect((await agent.next('picker.closed')).payload).toMatchObject({ reason: 'turn_ended' });
    expect((await agent.next('channel.deleted')).payload).toEqual({ chat_id });
    // The agent goes on for a while as if nothing had been.
    for (const turn of turns) {
      turn.delta(' and more');
      turn.toolProgress(0, 'canary');
      turn.typing();
      turn.toolEnd(0);
      turn.picker('confirm', options);
      turn.stop();
      turn.message('canary final');
      turn.end('cancelled');
    }
    await world.advance(15_000);
    for (const device of [a, b]) {
      expect(afterwards(device, chat_id)).toEqual([]);
      const idles = device.frames('agent.idle').filter((frame) => frame.chat_id === chat_id);
      expect(idles).toHaveLength(2);
      expect(device.frames('agent.busy')).toHaveLength(2);
    }

    await away.join();
    expect(JSON.stringify(away.connections.at(-1)!.ack)).not.toContain('canary');
    await away.sync();
    expect(await away.next('channel.deleted')).toMatchObject({ chat_id, payload: { chat_id } });
    expect(JSON.stringify(away.frames())).not.toContain('canary');
    for (const device of [a, away]) {
      const inside = { chat_id, thread_id: thread.thread_id! };
      for (const scope of [{ chat_id }, inside]) {
        expect(await device.history(scope)).toMatchObject(notFound);
        expect(await device.send('x', scope)).toMatchObject(notFound);
        expect(await device.request('agent.stop', {}, scope)).toMatchObject(notFound);
        expect(await device.request('agent.steer', { text: 'x' }, scope)).toMatchObject(notFound);
        expect(await device.request('search', { query: 'canary', scope: 'chat' }, scope)).toMatchObject(notFound);
        expect(await device.request('channel.rename', { name: 'x' }, scope)).toMatchObject(notFound);
        expect(await device.request('channel.delete', {}, scope)).toMatchObject(notFound);
        expect(await device.request('message.delete', { message_ids: ['x'] }, scope)).toMatchObject(notFound);
        expect(await device.request('read.receipt', { message_id: 'x' }, scope)).toMatchObject(notFound);
      }
      expect(await device.request('picker.select', { picker_id: picker.payload.picker_id!, value: 'yes' })).toMatchObject(notFound);
      expect((await device.request('search', { query: 'canary' })).payload.hits).toEqual([]);
      expect(await device.send('x', { reply_to: flat.payload.message_id! })).toMatchObject(notFound);
    }
    const page = await world.backbone.outbox.read(tenant.tenant_id, 0, { limit: 1_000 });
    expect(page.entries.some(({ body }) => Buffer.from(body).toString().includes('canary'))).toBe(false);
    expect((await world.store.reads.list(tenant.tenant_id)).length).toBe(0);
    expect(await world.store.turns.open(tenant.tenant_id)).toEqual([]);
    expect([...(await world.backbone.outbox.values(tenant.tenant_id)).keys()]).toEqual([]);
    // The agent has room for others.
    await a.send('next');
    const next = await agent.turn();
    expect(next.text).toBe('next');
    next.end();
    await b.next((frame) => frame.type === 'agent.idle' && frame.chat_id === lane.chat_id);
  }));

test('CHA8: the default channel stays, whichever it is, and its threads can go', () =>
  onStage(
    async ({ tenant, a, b }) => {
      expect(await a.request('channel.delete', {}, { chat_id: 'android:default' })).toMatchObject({
        type: 'error',
        payload: { code: 'unsupported', message: expect.stringMatching(/^chat_id/) },
      });
      const { payload } = await a.request('channel.create', { name: 'work' });
      const chat_id = payload.chat_id!;
      await a.request('channel.set_default', {}, { chat_id });
      expect(await a.request('channel.delete', {}, { chat_id })).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
      const thread = await a.request('channel.create', { name: 't', kind: 'thread', parent_chat_id: chat_id });
      const inside = { chat_id, thread_id: thread.payload.thread_id! };
      expect((await a.request('channel.delete', {}, inside)).payload).toEqual(inside);
      expect(await a.request('channel.delete', {}, { chat_id: 'android:default' })).toMatchObject({ type: 'channel.deleted' });
      await b.next((frame) => frame.type === 'channel.deleted' && frame.payload.chat_id === 'android:default');
      expect(await a.send('to the default')).toMatchObject({ chat_id });
      expect(tenant.log.map(({ frame }) => frame.type)).toEqual([
        'channel.created',
        'channel.list',
        'channel.created',
        'channel.deleted',
        'channel.deleted',
        'message',
      ]);
    },
    { agent: false },
  ));

test('CHA7 CHA3: a thread alone: its channel and the other threads stay', () =>
  onStage(async ({ agent, a, b }) => {
    await a.send('flat stays');
    const [one, two] = [await a.send('thread one', { auto_thread: true }), await a.send('thread two', { auto_thread: true })];
    const turns = [await agent.turn(), await agent.turn(), await agent.turn()];
    const inside = { chat_id: 'android:default', thread_id: one.thread_id! };
    const deleted = await b.request('channel.delete', {}, inside);
    expect(deleted).toMatchObject({ ...inside, payload: inside });
    await a.next('channel.deleted');
    expect(turns.map(({ stopped }) => stopped)).toEqual([false, true, false]);
    for (const turn of turns) {
      turn.message('answer');
      turn.end();
    }
    await a.next((frame) => frame.type === 'agent.idle' && frame.thread_id === two.thread_id);
    expect((await a.history(lane)).payload.messages).toHaveLength(2);
    expect((await a.history({ chat_id: 'android:default', thread_id: two.thread_id! })).payload.messages).toHaveLength(2);
    expect(await a.history(inside)).toMatchObject(notFound);
    expect(await a.request('channel.delete', {}, inside)).toMatchObject(notFound);
  }));

test('CHA9 OUT9: a device that lags is shown nothing live of it afterwards', () =>
  onStage(async ({ world, tenant, agent, a }) => {
    const slow = await tenant.join('slow', { edge: 1 });
    const pieces = await tenant.join('pieces', { edge: 1, caps: { delta: true, reasoning: true } });
    const { payload } = await a.request('channel.create', { name: 'doomed' });
    const chat_id = payload.chat_id!;
    await a.send('question', { chat_id });
    const turn = await agent.turn();
    turn.start();
    turn.delta('x');
    await slow.next('message.update');
    await pieces.next('message.delta');
    await world.advance(300);
    for (const device of [slow, pieces]) device.pause();
    for (let i = 0; i < 100; i++) turn.commentary('y'.repeat(4_000));
    turn.delta(' more');
    turn.reason('why');
    turn.toolStart(0);
    turn.toolProgress(0, 'working');
    turn.typing();
    await world.advance(500);
    await a.request('channel.delete', {}, { chat_id });
    await world.advance(500);
    for (const device of [slow, pieces]) device.resume();
    for (const device of [slow, pieces]) await device.next('channel.deleted');
    await world.advance(8_000);
    for (const device of [slow, pieces]) expect(afterwards(device, chat_id)).toEqual([]);
  }));

test('CHA9 TRN3: the agent is away: the turn ends all the same, and is not there when it comes back', () =>
  onStage(async ({ world, agent, a, b }) => {
    const { payload } = await a.request('channel.create', { name: 'doomed' });
    const chat_id = payload.chat_id!;
    await a.send('question', { chat_id });
    const turn = await agent.turn();
    turn.start();
    turn.delta('half');
    await b.next('message.update');
    agent.cut();
    await a.send('waits', { chat_id });
    await a.request('channel.delete', {}, { chat_id });
    await b.next((frame) => frame.type === 'agent.idle' && frame.chat_id === chat_id);
    const ack = await agent.connect();
    expect((ack.payload as { turns: unknown[] }).turns).toEqual([]);
    await agent.next('channel.deleted');
    turn.stop();
    turn.end();
    await world.advance(40_000);
    expect(afterwards(b, chat_id)).toEqual([]);
    expect(agent.turns.size).toBe(1);
    expect(b.frames('agent.idle')).toHaveLength(1);
  }));

test('CHA9 ENV24: the instance dies with it: it goes once, wholly, and whoever was away learns of it', () =>
  onStage(async (stage) => {
    const { world, tenant, agent, a, b } = stage;
    stayAttached(stage);
    const away = await tenant.join('away');
    for (const wait of [15, 30, 45, 60, 75, 90, 120, 150, 180]) {
      const { payload } = await a.request('channel.create', { name: `doomed ${wait}` });
      const chat_id = payload.chat_id!;
      await a.send(`secret ${wait}`, { chat_id });
      const turn = await agent.turn();
      turn.start();
      turn.delta(`secret answer ${wait}`);
      await b.next((frame) => frame.type === 'message.update' && frame.chat_id === chat_id);
      away.cut();
      world.backbone.faults = { ...world.backbone.faults, store_ms: [10, 10], outbox_ms: [10, 10] };
      const deleting = a.request('channel.delete', {}, { chat_id });
      await world.advance(wait);
      for (const session of world.sessions) session.kill();
      world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 0], outbox_ms: [0, 0] };
      await world.startSession();
      expect(await deleting).toMatchObject({ type: 'channel.deleted', payload: { chat_id } });
      await b.next((frame) => frame.type === 'channel.deleted' && frame.payload.chat_id === chat_id);
      await world.advance(2_000);
      await away.join();
      await away.sync(0);
      await away.next((frame) => frame.type === 'channel.deleted' && frame.payload.chat_id === chat_id);
      const from = away.received.all.findLastIndex(({ frame }) => frame.type === 'hello.ack');
      expect(JSON.stringify(away.received.all.slice(from))).not.toContain(`secret ${wait}`);
      expect(b.frames((frame) => frame.type === 'agent.idle' && frame.chat_id === chat_id)).toHaveLength(1);
    }
    expect((await world.store.channels.list(tenant.tenant_id)).map(({ name }) => name)).toEqual(['Default']);
    expect(await world.store.turns.open(tenant.tenant_id)).toEqual([]);
  }));

describe('CHA9 ORD2: what is under way when it goes', () => {
  test('sends of others are in it, or find it gone; none comes after', () =>
    onStage(
      async ({ world, a, b }) => {
        world.backbone.faults = { ...world.backbone.faults, socket_ms: [0, 30], bus_ms: [0, 10], store_ms: [0, 10] };
        for (let round = 0; round < 8; round++) {
          const { payload } = await a.request('channel.create', { name: 'doomed' });
          const chat_id = payload.chat_id!;
          const sends = Array.from({ length: 10 }, (_, i) => (i % 2 ? a : b).send(`r${round} ${i}`, { chat_id }));
          const deleting = a.request('channel.delete', {}, { chat_id });
          const late = Array.from({ length: 5 }, (_, i) => b.send(`late r${round} ${i}`, { chat_id }));
          expect((await deleting).type).toBe('channel.deleted');
          for (const sent of [...sends, ...late]) {
            const answer = await sent;
            if (answer.type === 'error') expect(answer.payload.code).toBe('not_found');
          }
          await world.advance(500);
          for (const device of [a, b]) {
            const at = device.received.all.findIndex(({ frame }) => frame.type === 'channel.deleted' && frame.payload.chat_id === chat_id);
            expect(device.received.all.slice(at + 1).filter(({ frame }) => frame.type === 'message' && frame.chat_id === chat_id)).toEqual(
              [],
            );
          }
        }
      },
      { agent: false },
    ));

  test('two devices delete it at once: one is answered that it went, the other that it is not there', () =>
    onStage(async ({ a, b }) => {
      const { payload } = await a.request('channel.create', { name: 'doomed' });
      const scope = { chat_id: payload.chat_id! };
      await b.next('channel.created');
      const answers = await Promise.all([a.request('channel.delete', {}, scope), b.request('channel.delete', {}, scope)]);
      expect(answers.map(({ type }) => type).sort()).toEqual(['channel.deleted', 'error']);
      await a.next('channel.deleted');
      expect(a.frames('channel.deleted')).toHaveLength(1);
    }));
});
