import { lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

describe('LNK39: an agent asks for the past', () => {
  test('history and search are answered to it alone, by its own lanes and turns', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const other = await world.tenant();
      const stranger = await other.join('stranger');
      await stranger.send('needle of another tenant');
      await a.send('first needle');
      const turn = await agent.turn();
      turn.message('answer');
      turn.end();
      await b.next('agent.idle');
      const { payload } = await a.request('channel.create', { name: 'other' });
      await a.send('second needle', { chat_id: payload.chat_id! });
      const before = tenant.log.length;
      const page = await agent.request('history', { limit: 10 }, lane);
      expect(page).toMatchObject({ type: 'history', ...lane, payload: { has_more: false } });
      expect(page.payload.messages!.map(({ text }) => text)).toEqual(['first needle', 'answer']);
      const older = await agent.request('history', { limit: 1, before_message_id: page.payload.messages![1]!.message_id! }, lane);
      expect(older.payload.messages!.map(({ text }) => text)).toEqual(['first needle']);
      const texts = async (content: object, scope: object) =>
        ((await agent.request('search', content as never, scope)).payload.hits as { snippet: string }[])
          .map(({ snippet }) => snippet)
          .sort();
      expect(await texts({ query: 'needle', scope: 'all' }, {})).toEqual(['first needle', 'second needle']);
      expect(await texts({ query: 'needle', scope: 'chat' }, { chat_id: payload.chat_id! })).toEqual(['second needle']);
      for (const scope of [{ chat_id: 'android:chan_99' }, { chat_id: 'android:default', thread_id: 't_99' }])
        expect(await agent.request('history', {}, scope)).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      expect(await agent.request('search', { query: 'needle', scope: 'chat' }, { chat_id: 'android:chan_99' })).toMatchObject({
        type: 'error',
        payload: { code: 'not_found' },
      });
      await world.settle();
      expect(tenant.log).toHaveLength(before);
      for (const device of [a, b]) expect(device.frames(['history', 'search.results'])).toEqual([]);
      (await agent.turn()).end();
      await world.advance(200);
    }));
});

describe('LNK44: what an agent does to channels', () => {
  test('LNK7 LNK44: an answer that went with the link comes on the next one, whenever that was; the channel is made once', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      for (const [n, moment] of [0, 1, 2, 4, 6, 9, 12, 20].entries()) {
        world.backbone.faults = { ...world.backbone.faults, socket_ms: [2, 2], bus_ms: [1, 1], store_ms: [1, 1] };
        const id = `make ${n}`;
        agent.say('channel.create', { name: `Made ${n}` }, { id });
        await world.advance(moment);
        agent.cut({ silent: n % 2 === 0 });
        await world.advance(50);
        await agent.connect(world.edges[n % 2]!.links.dial('/agent', { token: tenant.agent_token }));
        await world.advance(500);
        const answers = agent.received.all.filter((frame) => frame.id === id);
        expect(answers).toMatchObject([{ type: 'channel.created', payload: { name: `Made ${n}` } }]);
        expect(agent.unacked).toEqual([]);
        expect(a.frames('channel.created').filter(({ payload }) => payload.name === `Made ${n}`)).toHaveLength(1);
      }
    }));

  test('channel.create is answered, told to every device, and done once', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const made = await agent.request('channel.create', { name: ' Cron\nreports ' });
      expect(made).toMatchObject({ type: 'channel.created', payload: { name: 'Cron reports', kind: 'channel' } });
      for (const device of [a, b]) expect((await device.next('channel.created')).payload).toEqual(made.payload);
      const thread = await agent.request('channel.create', { name: 'Day one', kind: 'thread', parent_chat_id: made.payload.chat_id! });
      expect(thread).toMatchObject({ type: 'channel.created', chat_id: made.payload.chat_id, thread_id: thread.payload.thread_id });
      for (const [payload, code] of [
        [{ name: '\u200b' }, 'unsupported'],
        [{ name: 'x', kind: 'thread' }, 'unsupported'],
        [{ name: 'x', kind: 'thread', parent_chat_id: 'android:chan_99' }, 'not_found'],
      ] as const)
        expect(await agent.request('channel.create', payload)).toMatchObject({ type: 'error', payload: { code } });
      // Said again on a new link, because nobody acked it.
      agent.autoAck(false);
      world.edges[0]!.node.setConnected(false);
      agent.say('channel.create', { name: 'once' }, { id: 'again' });
      await world.advance(50);
      world.edges[0]!.node.setConnected(true);
      await agent.connect();
      await a.next((frame) => frame.payload.name === 'once');
      await world.advance(3_000);
      expect((await world.store.channels.list(tenant.tenant_id)).filter(({ name }) => name === 'once')).toHaveLength(1);
      agent.autoAck(true);
      // What an agent named, an agent may name again; what a person named, not.
      const scope = { chat_id: made.payload.chat_id! };
      expect(await agent.request('channel.rename', { name: 'Weekly' }, scope)).toMatchObject({ payload: { name: 'Weekly' } });
      await a.request('channel.rename', { name: 'Mine' }, scope);
      expect(await agent.request('channel.rename', { name: 'Weekly' }, scope)).toMatchObject({ type: 'error' });
    }));

  test('LIM11: its quota is the tenant’s', () =>
    onStage(
      async ({ agent }) => {
        expect((await agent.request('channel.create', { name: 'one' })).type).toBe('channel.created');
        expect(await agent.request('channel.create', { name: 'two' })).toMatchObject({ type: 'error', payload: { code: 'rate_limited' } });
      },
      { quotas: { channels: 2 } },
    ));
});

test('LNK41: what people do to channels is told to the agent, in order, also when it was away', () =>
  onStage(async ({ agent, a }) => {
    agent.cut();
    const { payload } = await a.request('channel.create', { name: 'one' });
    const scope = { chat_id: payload.chat_id! };
    await a.request('channel.rename', { name: 'two' }, scope);
    const echo = await a.send('hello there', { ...scope, auto_thread: true });
    await a.request('channel.delete', {}, { ...scope, thread_id: echo.thread_id! });
    await a.request('channel.delete', {}, scope);
    await agent.connect();
    await agent.next((frame) => frame.type === 'channel.deleted' && frame.payload.thread_id === undefined);
    const story = agent.received.all
      .filter(({ type }) => /^(channel|turn)/.test(type))
      .map(({ type, payload: said }) => [type, said.name ?? said.thread_id]);
    expect(story).toEqual([
      ['channel.created', 'one'],
      ['channel.renamed', 'two'],
      ['channel.created', 'hello there'],
      ['channel.deleted', echo.thread_id],
      ['channel.deleted', undefined],
    ]);
  }));

test('LNK43 PIC12: an agent withdraws its picker: devices hear why, and an answer finds nothing', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    const own = turn.picker('choice', { choices: [{ value: 'y', label: 'Y' }] });
    const picker_id = (await b.next('picker.choice')).payload.picker_id!;
    turn.say('picker.closed', { picker_id: own, reason: 'withdrawn' });
    expect((await b.next('picker.closed')).payload).toEqual({ picker_id, reason: 'withdrawn' });
    expect(await b.request('picker.select', { picker_id, value: 'y' })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    // One that it never opened, one that is answered, one again: nothing.
    turn.say('picker.closed', { picker_id: 'never' });
    turn.say('picker.closed', { picker_id: own });
    const second = turn.picker('choice', { choices: [{ value: 'y', label: 'Y' }] });
    const answered = (await b.next('picker.choice')).payload.picker_id!;
    await b.request('picker.select', { picker_id: answered, value: 'y' });
    turn.say('picker.closed', { picker_id: second });
    await world.advance(300);
    expect(b.frames('picker.closed')).toHaveLength(1);
    expect(a.frames('picker.closed')).toHaveLength(2);
    turn.end();
    await a.next('agent.idle');
  }));

test('LNK28: what an agent shows outside a turn: a picker and a notification of its own, in a lane that stands', () =>
  onStage(async ({ world, agent, a, b }) => {
    agent.say('picker.confirm', { picker_id: 'p', choices: [{ value: 'y', label: 'Y' }] }, lane);
    const picker = await b.next('picker.confirm');
    expect(await b.request('picker.select', { picker_id: picker.payload.picker_id!, value: 'y' })).toMatchObject({ type: 'ack' });
    expect((await agent.next('picker.select')).payload).toEqual({ picker_id: 'p', value: 'y' });
    agent.say('typing', { on: true }, { chat_id: 'android:chan_99' });
    agent.say('notification', { kind: 'cron', title: 't', body: 'b', ts: 1 }, { chat_id: 'android:chan_99' });
    agent.say('message', { message_id: 'm', role: 'cron', text: 'nowhere' }, { chat_id: 'android:chan_99' });
    await world.advance(1_000);
    for (const device of [a, b]) expect(device.frames((frame) => frame.chat_id === 'android:chan_99')).toEqual([]);
    expect(agent.unacked).toEqual([]);
  }));
