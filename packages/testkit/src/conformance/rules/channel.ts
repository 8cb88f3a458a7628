import { type Check, like, must, need, refused, shown } from '../check.js';

/** Channels and threads, push, media. */
export const channel: readonly Check[] = [
  {
    rules: ['CHA1'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own();
      const ack = await space.device('first').join();
      const { channels } = ack.payload as { channels: unknown[] };
      must('CHA1', channels.length === 1, `a new tenant has ${JSON.stringify(channels)}`);
      like(
        'CHA1',
        { type: 'entry', payload: channels[0] as Record<string, unknown> },
        { payload: { chat_id: 'android:default', kind: 'default', is_default: true } },
      );
      return JSON.stringify(channels[0]);
    },
  },
  {
    rules: ['CHA2', 'CHA3', 'CHA4', 'CHA5', 'CHA7', 'CHA9', 'CHA10', 'CHA12', 'CHA13'],
    async run(ctx) {
      const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
      const made = await device.request('channel.create', { name: '  Cron reports  ', kind: 'channel' });
      if (made.payload.code === 'unsupported') throw need('channel.create');
      like('CHA4', made, { type: 'channel.created', payload: { kind: 'channel', name: 'Cron reports' } });
      const chat_id = made.payload.chat_id!;
      must('CHA2', /^android:chan_\d+$/.test(chat_id), `its chat_id is ${chat_id}`);
      like('CHA12', await other.next('channel.created'), { id: undefined, payload: { chat_id } });
      const thread = await device.request('channel.create', { name: 'Thread', kind: 'thread', parent_chat_id: chat_id });
      like('CHA3', thread, {
        type: 'channel.created',
        chat_id,
        payload: { kind: 'thread', parent_chat_id: chat_id, thread_id: (id: unknown) => /^t_\d+$/.test(String(id)) },
      });
      const thread_id = thread.payload.thread_id!;
      like('CHA4', await device.send(ctx.text('in a thread'), { chat_id, thread_id }), { type: 'message', chat_id, thread_id });
      like('CHA5', await device.request('channel.rename', { name: 'Reports' }, { chat_id }), {
        type: 'channel.renamed',
        payload: { chat_id, name: 'Reports' },
      });
      like('CHA5', await device.request('channel.rename', { name: 'Line' }, { chat_id, thread_id }), {
        type: 'channel.renamed',
        payload: { thread_id, name: 'Line' },
      });
      for (const name of ['', '   ', 'x'.repeat(129)])
        refused('CHA10', await device.request('channel.create', { name }), 'unsupported', 'name');
      refused('CHA10', await device.request('channel.create', {}), 'unsupported', 'name');
      like('CHA10', await device.request('channel.rename', { name: '😀'.repeat(128) }, { chat_id }), { type: 'channel.renamed' });
      for (const [type, payload] of [
        ['channel.rename', { name: 'x' }],
        ['channel.delete', {}],
        ['channel.set_default', {}],
      ] as const) {
        refused('CHA13', await device.request(type, payload, { chat_id: 'android:chan_0' }), 'not_found');
        if (type !== 'channel.set_default')
          refused('CHA13', await device.request(type, payload, { chat_id, thread_id: 't_0' }), 'not_found');
      }
      like('CHA7', await device.request('channel.delete', {}, { chat_id, thread_id }), {
        type: 'channel.deleted',
        payload: { chat_id, thread_id },
      });
      like('CHA7', await device.request('channel.delete', {}, { chat_id }), { type: 'channel.deleted', payload: { chat_id } });
      like('CHA12', await other.next((frame) => frame.type === 'channel.deleted' && frame.payload.thread_id === undefined), {
        payload: { chat_id },
      });
      refused('CHA9', await device.history({ chat_id }), 'not_found');
      const again = await device.request('channel.create', { name: 'Next' });
      must('CHA2', again.payload.chat_id !== chat_id, `${chat_id} was used again`);
      await device.request('channel.delete', {}, { chat_id: again.payload.chat_id! });
      return `${chat_id} and ${thread_id} made, renamed, deleted; every device told; the ids are not used again`;
    },
  },
  {
    rules: ['CHA6', 'CHA8'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own();
      const [device, other] = [await space.join('phone'), await space.join('tablet', { door: 1 })];
      refused('CHA8', await device.request('channel.delete', {}, { chat_id: 'android:default' }), 'unsupported');
      const { chat_id } = await space.channel();
      const list = await device.request('channel.set_default', {}, { chat_id });
      if (list.payload.code === 'unsupported') throw need('channel.set_default');
      like('CHA6', list, { type: 'channel.list' });
      const defaults = (list.payload.channels as { chat_id: string; is_default?: boolean }[]).filter(
        ({ is_default }) => is_default === true,
      );
      must('CHA6', defaults.length === 1 && defaults[0]!.chat_id === chat_id, `the list says ${JSON.stringify(defaults)}`);
      like('CHA6', await other.next('channel.list'), { id: undefined });
      like('CHA6', await device.send(ctx.text('to the default')), { type: 'message', chat_id });
      refused('CHA8', await device.request('channel.delete', {}, { chat_id }), 'unsupported');
      return `${chat_id} is the default now, and cannot be deleted`;
    },
  },
  {
    rules: ['CHA11', 'LNK44'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const lane = await ctx.channel();
      await device.request('channel.rename', { name: 'Mine' }, lane);
      actor.agent.say('channel.rename', { name: 'Title', only_if_current: 'Conformance' }, { ...lane, id: ctx.text('id').slice(0, 60) });
      actor.agent.say('notification', { kind: 'generic', title: 'behind', body: 'behind', ts: 1 }, lane);
      await device.next((frame) => frame.type === 'notification' && frame.payload.title === 'behind');
      must('CHA11', !device.frames('channel.renamed').some(({ payload }) => payload.name === 'Title'), "a person's name was overwritten");
      actor.agent.say('channel.rename', { name: 'Title', only_if_current: 'Mine' }, { ...lane, id: ctx.text('id').slice(0, 60) });
      const renamed = await device
        .next((frame) => frame.type === 'channel.renamed' && frame.payload.name === 'Title', { within_ms: 1_000 })
        .catch(() => undefined);
      must('LNK44', renamed === undefined || renamed.payload.chat_id === lane.chat_id, shown(renamed ? [renamed] : []));
      return renamed === undefined ? "a person's name stays" : "a person's name stays while it is another than the agent thinks";
    },
  },
  {
    rules: ['PSH1'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own();
      const device = await space.join('phone');
      like('PSH1', await device.request('fcm.register', { ntfy_topic: 'conformance' }), { type: 'ack', payload: { ok: true } });
      return 'ack {ok:true}';
    },
  },
  {
    rules: ['PSH13'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own();
      const device = await space.join('phone');
      const ok = { type: 'ack', payload: { ok: true } };
      const quiet = { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' };
      like('PSH13', await device.request('push.mute', { muted_until: 1, quiet }), ok);
      like('PSH13', await device.request('push.mute', {}, { chat_id: 'android:default' }), ok);
      const wrong = { type: 'error', payload: { code: 'unsupported' } };
      like('PSH13', await device.request('push.mute', { quiet: { ...quiet, time_zone: 'Nowhere/At_All' } }), wrong);
      like('PSH13', await device.request('push.mute', { quiet: { ...quiet, from: '25:00' } }), wrong);
      like('PSH13', await device.request('push.mute', {}, { chat_id: 'android:chan_999999' }), {
        type: 'error',
        payload: { code: 'not_found' },
      });
      return 'ack {ok:true} for a lane and for all; what is no time, no zone or no lane is refused';
    },
  },
];
