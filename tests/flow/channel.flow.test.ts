import { type AnyFrame, lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

type Entry = { chat_id: string; thread_id?: string; name: string; kind: string; is_default?: boolean; parent_chat_id?: string };
const channelsOf = (frame: AnyFrame | undefined) => (frame?.payload.channels ?? []) as Entry[];
const refused = (code: string, field?: string) => ({
  type: 'error',
  payload: { code, message: field === undefined ? expect.any(String) : expect.stringMatching(new RegExp(`^${field}`)) },
});

describe('channel.create', () => {
  test('CHA4 CHA2 CHA12 ENV25: answered by channel.created, which every device gets, and sync', () =>
    onStage(async ({ tenant, a, b }) => {
      const away = await tenant.join('away');
      away.cut();
      const created = await a.request('channel.create', { name: '  Cron Reports ', kind: 'channel' });
      expect(created).toMatchObject({ type: 'channel.created', id: expect.any(Number) });
      expect(created.payload).toEqual({
        chat_id: expect.stringMatching(/^android:chan_\d+$/),
        name: 'Cron Reports',
        kind: 'channel',
        parent_chat_id: null,
      });
      const shown = await b.next('channel.created');
      expect(shown.payload).toEqual(created.payload);
      expect(shown).not.toHaveProperty('id');
      expect(a.frames('channel.created')).toHaveLength(1);
      await away.join();
      expect(channelsOf(away.connections.at(-1)!.ack).map(({ name }) => name)).toEqual(['Default', 'Cron Reports']);
      await away.sync();
      expect(await away.next('channel.created')).toMatchObject({ payload: created.payload });
    }));

  test('CHA3 CHA4 CHA2: a thread carries its channel’s chat_id and its own thread_id', () =>
    onStage(async ({ agent, a, b }) => {
      const made = await a.request('channel.create', { name: 'Talk', kind: 'thread', parent_chat_id: 'android:default' });
      expect(made).toMatchObject({ type: 'channel.created', chat_id: 'android:default', thread_id: made.payload.thread_id });
      expect(made.payload).toEqual({
        chat_id: 'android:default',
        thread_id: expect.stringMatching(/^t_\d+$/),
        parent_chat_id: 'android:default',
        name: 'Talk',
        kind: 'thread',
      });
      const inside = { chat_id: 'android:default', thread_id: made.payload.thread_id! };
      expect(await a.send('in the thread', inside)).toMatchObject(inside);
      const turn = await agent.turn();
      expect(turn).toMatchObject(inside);
      turn.start();
      turn.delta('x');
      turn.toolStart(0);
      turn.toolEnd(0);
      turn.stop();
      turn.end();
      await b.next('agent.idle');
      for (const frame of b.frames([
        'message',
        'message.start',
        'message.update',
        'message.stop',
        'tool.start',
        'agent.busy',
        'agent.idle',
      ]))
        expect(frame).toMatchObject(inside);
      expect((await a.history(inside)).payload.messages).toHaveLength(2);
      expect((await a.history(lane)).payload.messages).toEqual([]);
    }));

  test('CHA4 CHA13: a thread without a channel, or in one that is not there', () =>
    onStage(async ({ world, tenant, a }) => {
      const foreign = await (await world.tenant()).join('stranger');
      const theirs = await foreign.request('channel.create', { name: 'theirs' });
      expect(await a.request('channel.create', { name: 'x', kind: 'thread' })).toMatchObject(refused('unsupported', 'parent_chat_id'));
      const unknown = await a.request('channel.create', { name: 'x', kind: 'thread', parent_chat_id: 'android:chan_77' });
      expect(unknown).toMatchObject(refused('not_found', 'parent_chat_id'));
      const stranger = await a.request('channel.create', { name: 'x', kind: 'thread', parent_chat_id: theirs.payload.chat_id! });
      expect(stranger.payload).toEqual(unknown.payload);
      expect(await a.request('channel.create', { name: 'x', kind: 'group' })).toMatchObject(refused('unsupported', 'kind'));
      expect(tenant.log).toEqual([]);
    }));

  test('CHA10: equal names are allowed, missing and blank ones are not', () =>
    onStage(async ({ tenant, a }) => {
      const [one, two] = [await a.request('channel.create', { name: 'same' }), await a.request('channel.create', { name: 'same' })];
      expect(one.payload.chat_id).not.toBe(two.payload.chat_id);
      for (const payload of [{}, { name: '' }, { name: '   ' }, { name: 7 }, { name: null }])
        expect(await a.request('channel.create', payload)).toMatchObject(refused('unsupported', 'name'));
      expect(tenant.log).toHaveLength(2);
    }));

  test('LIM11 ERR4: channels and threads of a tenant have a quota; one that goes makes room', () =>
    onStage(
      async ({ a }) => {
        const { payload } = await a.request('channel.create', { name: 'one' });
        await a.request('channel.create', { name: 'two', kind: 'thread', parent_chat_id: payload.chat_id! });
        for (const more of [{ name: 'three' }, { name: 'three', kind: 'thread', parent_chat_id: payload.chat_id! }])
          expect(await a.request('channel.create', more)).toMatchObject({
            type: 'error',
            payload: { code: 'rate_limited', retry_after_ms: expect.any(Number) },
          });
        expect(await a.send('more', { auto_thread: true })).toMatchObject({ type: 'error', payload: { code: 'rate_limited' } });
        expect((await a.history(lane)).payload.messages).toEqual([]);
        await a.request('channel.delete', {}, { chat_id: payload.chat_id! });
        expect((await a.request('channel.create', { name: 'three' })).type).toBe('channel.created');
      },
      { quotas: { channels: 3 } },
    ));

  test('ENV24 CHA4: asked again of another instance, it is one channel', () =>
    onStage(async ({ world, tenant, a, b }) => {
      world.backbone.faults = { ...world.backbone.faults, store_ms: [40, 40] };
      const asked = a.request('channel.create', { name: 'once' });
      await world.advance(30);
      for (const session of world.sessions) session.kill();
      await world.startSession();
      expect(await asked).toMatchObject({ type: 'channel.created', payload: { name: 'once' } });
      await b.next('channel.created');
      expect((await world.store.channels.list(tenant.tenant_id)).map(({ name }) => name)).toEqual(['Default', 'once']);
    }));

  test('CHA2: ids are never given again', () =>
    onStage(async ({ a }) => {
      const ids = new Set<string>();
      for (let i = 0; i < 5; i++) {
        const { payload } = await a.request('channel.create', { name: 'passing' });
        ids.add(payload.chat_id!);
        await a.request('channel.delete', {}, { chat_id: payload.chat_id! });
      }
      expect(ids.size).toBe(5);
    }));
});

describe('channel.rename', () => {
  test('CHA5 CHA12: a channel by its chat_id, a thread by both; told to every device and the agent', () =>
    onStage(async ({ agent, a, b }) => {
      const { payload } = await a.request('channel.create', { name: 'old' });
      const scope = { chat_id: payload.chat_id! };
      const thread = await a.request('channel.create', { name: 'old thread', kind: 'thread', parent_chat_id: scope.chat_id });
      const renamed = await a.request('channel.rename', { name: ' new ' }, scope);
      expect(renamed).toMatchObject({ type: 'channel.renamed', ...scope, payload: { ...scope, name: 'new' } });
      const inside = { ...scope, thread_id: thread.payload.thread_id! };
      expect(await b.request('channel.rename', { name: 'new thread' }, inside)).toMatchObject({
        type: 'channel.renamed',
        ...inside,
        payload: { ...inside, name: 'new thread' },
      });
      await a.next((frame) => frame.type === 'channel.renamed' && frame.payload.name === 'new thread');
      expect(b.frames('channel.renamed').map(({ payload: { name } }) => name)).toEqual(['new', 'new thread']);
      await agent.next((frame) => frame.type === 'channel.renamed' && frame.payload.name === 'new thread');
      a.cut();
      await a.join();
      expect(channelsOf(a.connections.at(-1)!.ack).map(({ name }) => name)).toEqual(['Default', 'new', 'new thread']);
      await a.sync();
    }));

  test('CHA13 ENV14: an unknown channel or thread, or none', () =>
    onStage(async ({ a }) => {
      expect(await a.request('channel.rename', { name: 'x' })).toMatchObject(refused('unsupported', 'chat_id'));
      expect(await a.request('channel.rename', { name: 'x' }, { chat_id: 'android:chan_9' })).toMatchObject(
        refused('not_found', 'chat_id'),
      );
      expect(await a.request('channel.rename', { name: 'x' }, { chat_id: 'android:default', thread_id: 't_9' })).toMatchObject(
        refused('not_found', 'thread_id'),
      );
      const one = await a.request('channel.create', { name: 'one' });
      const thread = await a.request('channel.create', { name: 't', kind: 'thread', parent_chat_id: one.payload.chat_id! });
      // A thread of another channel.
      for (const type of ['channel.rename', 'channel.delete', 'history', 'agent.stop'])
        expect(await a.request(type, { name: 'x' }, { chat_id: 'android:default', thread_id: thread.payload.thread_id! })).toMatchObject(
          refused('not_found', 'thread_id'),
        );
    }));

  test('CHA11: a person’s name stays, whatever the agent calls it; only_if_current is held to', () =>
    onStage(async ({ agent, a, b }) => {
      const echo = await a.send('please plan my holidays', { auto_thread: true });
      const inside = { chat_id: echo.chat_id!, thread_id: echo.thread_id! };
      const title = b.frames('channel.created')[0]?.payload.name ?? (await b.next('channel.created')).payload.name;
      const turn = await agent.turn();
      expect(await agent.request('channel.rename', { name: 'No', only_if_current: 'another name' }, inside)).toMatchObject({
        type: 'error',
        payload: { code: 'unsupported' },
      });
      expect(await agent.request('channel.rename', { name: 'Holidays', only_if_current: title }, inside)).toMatchObject({
        type: 'channel.renamed',
        payload: { name: 'Holidays' },
      });
      expect((await b.next('channel.renamed')).payload.name).toBe('Holidays');
      await a.request('channel.rename', { name: 'My summer' }, inside);
      expect((await b.next('channel.renamed')).payload.name).toBe('My summer');
      for (const payload of [{ name: 'Better' }, { name: 'Better', only_if_current: 'My summer' }])
        expect(await agent.request('channel.rename', payload, inside)).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
      // A channel that a person made has a person’s name from the start.
      const own = await a.request('channel.create', { name: 'mine' });
      expect(await agent.request('channel.rename', { name: 'yours' }, { chat_id: own.payload.chat_id! })).toMatchObject({ type: 'error' });
      turn.end();
      await b.next('agent.idle');
      expect(b.frames('channel.renamed')).toHaveLength(2);
    }));
});

describe('channel.set_default', () => {
  test('CHA6 CHA12: answered by channel.list, which is broadcast; what names no channel goes there', () =>
    onStage(async ({ tenant, agent, a, b }) => {
      const { payload } = await a.request('channel.create', { name: 'work' });
      const chat_id = payload.chat_id!;
      const list = await a.request('channel.set_default', {}, { chat_id });
      expect(list.type).toBe('channel.list');
      expect(channelsOf(list)).toEqual([
        { chat_id: 'android:default', name: 'Default', kind: 'channel' },
        { chat_id, name: 'work', kind: 'default', is_default: true },
      ]);
      expect((await b.next('channel.list')).payload).toEqual(list.payload);
      expect(await b.send('to the default')).toMatchObject({ chat_id, thread_id: null });
      const turn = await agent.turn();
      expect(turn.chat_id).toBe(chat_id);
      turn.end();
      await a.next('agent.idle');
      const late = await tenant.join('late');
      expect(channelsOf(late.connections[0]!.ack)).toEqual(channelsOf(list));
      // Again is no fault.
      expect(channelsOf(await a.request('channel.set_default', {}, { chat_id }))).toEqual(channelsOf(list));
    }));

  test('CHA6 CHA13: only a channel can become the default', () =>
    onStage(async ({ tenant, a }) => {
      const thread = await a.request('channel.create', { name: 't', kind: 'thread', parent_chat_id: 'android:default' });
      expect(
        await a.request('channel.set_default', {}, { chat_id: 'android:default', thread_id: thread.payload.thread_id! }),
      ).toMatchObject(refused('unsupported', 'thread_id'));
      expect(await a.request('channel.set_default', {}, { chat_id: 'android:chan_99' })).toMatchObject(refused('not_found', 'chat_id'));
      expect(await a.request('channel.set_default')).toMatchObject(refused('unsupported', 'chat_id'));
      expect(tenant.log.map(({ frame }) => frame.type)).toEqual(['channel.created']);
    }));

  test('CHA6 CHA8 SYN6: the directory as it was changed while a device was away, whole, by hello.ack and by sync', () =>
    onStage(async ({ tenant, a }) => {
      const away = await tenant.join('away');
      away.cut();
      const one = await a.request('channel.create', { name: 'one' });
      const two = await a.request('channel.create', { name: 'two' });
      const thread = await a.request('channel.create', { name: 'th', kind: 'thread', parent_chat_id: one.payload.chat_id! });
      await a.request('channel.set_default', {}, { chat_id: two.payload.chat_id! });
      await a.request('channel.rename', { name: 'first' }, { chat_id: one.payload.chat_id! });
      await a.request('channel.delete', {}, { chat_id: 'android:default' });
      await a.request('channel.delete', {}, { chat_id: one.payload.chat_id!, thread_id: thread.payload.thread_id! });
      await a.request('channel.delete', {}, { chat_id: one.payload.chat_id! });
      const three = await a.request('channel.create', { name: 'three' });
      const ack = await away.join();
      const now = channelsOf(ack);
      expect(now.map(({ name }) => name)).toEqual(['two', 'three']);
      away.received.skip();
      await away.sync();
      // An app that goes by the frames alone comes to the same.
      let shown: Entry[] = [];
      for (const { frame } of away.received.rest()) {
        const entry = frame.payload as unknown as Entry;
        const gone = (other: Entry) =>
          other.chat_id === entry.chat_id && (entry.thread_id === undefined || other.thread_id === entry.thread_id);
        if (frame.type === 'channel.list') shown = channelsOf(frame);
        if (frame.type === 'channel.created')
          shown = [...shown.filter((other) => other.chat_id !== entry.chat_id || other.thread_id !== entry.thread_id), entry];
        if (frame.type === 'channel.deleted') shown = shown.filter((other) => !gone(other));
      }
      expect(shown.map(({ chat_id }) => chat_id).sort()).toEqual([two.payload.chat_id, three.payload.chat_id].sort());
    }));
});
