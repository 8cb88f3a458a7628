import { type Check, like, must, need, refused, shown } from '../check.js';

/** Messages, deleting, history. */
export const msg: readonly Check[] = [
  {
    rules: ['MSG1', 'MSG4', 'MSG7'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const text = ctx.text();
      const client_ref = ctx.text('ref');
      const first = await device.send(ctx.text('first'), ctx.lane);
      const before = ctx.target.patience.now();
      const echo = await device.send(text, { ...ctx.lane, client_ref, reply_to: first.payload.message_id, ts: 1 });
      like('MSG1', echo, {
        type: 'message',
        chat_id: ctx.lane.chat_id,
        thread_id: ctx.lane.thread_id,
        payload: {
          role: 'user',
          text,
          client_ref,
          reply_to: first.payload.message_id,
          message_id: (id: unknown) => typeof id === 'string' && id !== '',
        },
      });
      must('MSG7', Number.isSafeInteger(echo.payload.ts) && echo.payload.ts !== 1, `ts is ${echo.payload.ts}`);
      const again = await device.send(text, { ...ctx.lane, client_ref, reply_to: first.payload.message_id });
      must(
        'MSG4',
        again.payload.message_id === echo.payload.message_id,
        `the same client_ref made ${again.payload.message_id} of ${echo.payload.message_id}`,
      );
      device.cut();
      await device.join(ctx.door(1));
      const later = await device.send(text, { ...ctx.lane, client_ref, reply_to: first.payload.message_id });
      must('MSG4', JSON.stringify(later.payload) === JSON.stringify(echo.payload), `on another connection: ${shown([later])}`);
      const page = await device.history({ ...ctx.lane, limit: 20 });
      const rows = page.payload.messages!.filter((one) => one.text === text);
      must('MSG4', rows.length === 1, `history has it ${rows.length} times`);
      return `${echo.payload.message_id}, three times the same for one client_ref, ts ${Number(echo.payload.ts) - before} ms from here`;
    },
  },
  {
    rules: ['MSG5'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const client_ref = ctx.text('ref');
      await device.send(ctx.text(), { ...ctx.lane, client_ref });
      refused('MSG5', await device.send(ctx.text(), { ...ctx.lane, client_ref }), 'unsupported', 'client_ref');
      return 'another text under the same client_ref: error unsupported';
    },
  },
  {
    rules: ['MSG2', 'MSG3', 'ERR3'],
    async run(ctx) {
      const device = await ctx.join('phone');
      for (const text of ['', ' ', '\n\t\u00a0 ']) refused('MSG2', await device.send(text, ctx.lane), 'unsupported', 'text');
      const text = ctx.text('never');
      const unknown: Record<string, unknown>[] = [
        { chat_id: 'android:chan_0' },
        { ...ctx.lane, thread_id: 't_0' },
        { ...ctx.lane, reply_to: 'm_none' },
        { ...ctx.lane, media_refs: ['mu_none'] },
      ];
      for (const more of unknown) refused('MSG3', await device.send(text, more), 'not_found');
      const page = await device.history({ ...ctx.lane, limit: 20 });
      must('MSG3', !page.payload.messages!.some((one) => one.text === text), 'it was stored');
      return 'blank: unsupported; unknown chat_id, thread_id, reply_to, media_refs: not_found, nothing stored';
    },
  },
  {
    rules: ['MSG10', 'STR3', 'MSG8', 'MSG9', 'HIS6', 'MSG18'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const from = (await device.sync()).payload.cursor!;
      device.received.skip();
      const { echo, turn } = await actor.turn(device, ctx.text('same everywhere'), ctx.lane);
      const runtime = { model: 'test', context_pct: 38, cwd: '~', latency: 1.5, cost: 0.0012 };
      turn.commentary('not in history');
      like('MSG18', await device.next('commentary'), { payload: { text: 'not in history' } });
      turn.start();
      turn.reason('because');
      turn.delta('final ');
      turn.stop({ final_text: 'final text', model: 'test', tokens: 11, runtime });
      turn.message('plain one');
      turn.end();
      const stop = like('STR3', await device.next('message.stop'), {
        payload: { final_text: 'final text', reasoning: 'because', model: 'test', tokens: 11 },
      });
      like('MSG9', stop, { payload: { runtime } });
      const plain = like('MSG8', await device.next('message'), { payload: { text: 'plain one', reasoning: undefined } });
      must('MSG9', typeof plain.payload.runtime === 'object', `a final assistant message without runtime: ${shown([plain])}`);
      await device.next('agent.idle');
      const page = await device.history({ ...ctx.lane, limit: 20 });
      const row = (id: string | undefined) => page.payload.messages!.find((one) => one.message_id === id);
      like(
        'HIS6',
        { type: 'row', payload: row(stop.payload.message_id) ?? {} },
        {
          payload: {
            role: 'assistant',
            text: 'final text',
            reasoning: 'because',
            model: 'test',
            tokens: 11,
            runtime,
            ts: stop.payload.ts ?? Number.isSafeInteger,
          },
        },
      );
      like(
        'MSG10',
        { type: 'row', payload: row(echo.payload.message_id) ?? {} },
        { payload: { role: 'user', text: echo.payload.text, ts: echo.payload.ts } },
      );
      must('MSG18', device.frames(({ payload }) => payload.text === 'not in history').length === 1, 'the commentary came twice');
      must('MSG18', !page.payload.messages!.some(({ text }) => text === 'not in history'), 'commentary is in history');
      const other = ctx.newcomer();
      await other.join();
      await other.sync(from);
      const replayed = other.frames('message.stop').find(({ payload }) => payload.message_id === stop.payload.message_id);
      must('MSG10', JSON.stringify(replayed?.payload) === JSON.stringify(stop.payload), `sync says ${shown(replayed ? [replayed] : [])}`);
      return 'user, streamed and plain message alike live, by sync and in history; reasoning, model, tokens and runtime with them';
    },
  },
  {
    rules: ['MSG12'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const device = await space.join('phone');
      const texts = [ctx.text('waits'), ctx.text('waits behind')];
      for (const text of texts) await device.send(text);
      const agent = space.agent();
      await agent.connect();
      for (const text of texts) {
        const turn = await agent.turn();
        must('MSG12', turn.text === text, `the agent was given ${turn.text}`);
        turn.end();
      }
      await device.next('agent.idle');
      return 'two messages sent while no agent was there are handed over in order';
    },
  },
  {
    rules: ['MSG13', 'LNK29', 'CMD1', 'CMD2', 'CMD3', 'LNK38'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      await agent.connect();
      const commands = [
        { name: '/probe', description: 'Probe', args_hint: '[what]', category: 'Test', aliases: ['/pr'] },
        { name: '/quit', description: 'Quit', args_hint: '', category: 'Test', aliases: [] },
      ];
      agent.say('commands.catalog', { commands, rev: 1 });
      const device = await space.join('phone');
      await device.send('first');
      const first = await agent.turn();
      await device.send('/probe now');
      const command = await agent.turn();
      must(
        'MSG13',
        command.text === '/probe now' && command.offer.kind === 'command',
        `beside the running turn came ${command.text}, ${String(command.offer.kind)}`,
      );
      device.received.skip();
      command.message('probed');
      command.end();
      await device.next((frame) => frame.payload.text === 'probed');
      first.end();
      await device.next('agent.idle');
      must('LNK29', device.frames('agent.idle').length === 1, 'the command ended with an idle of its own');
      agent.cut();
      const catalog = await device.request('commands.catalog');
      if (catalog.payload.code === 'unsupported') throw need('commands.catalog');
      like('CMD2', catalog, { type: 'commands.catalog', payload: { commands: (x: unknown) => Array.isArray(x) } });
      const told = catalog.payload.commands as { name: string }[];
      for (const { name } of commands)
        must(
          'CMD1',
          told.some((one) => one.name === name),
          `the catalog lacks ${name}: ${shown([catalog])}`,
        );
      const complete = await device.request('commands.complete', { prefix: '/pr' });
      like('CMD3', complete, {
        type: 'commands.complete',
        payload: {
          prefix: '/pr',
          matches: (x: unknown) => Array.isArray(x) && x.some((one) => (one as { name: string }).name === '/probe'),
        },
      });
      return 'a command goes beside a running turn; its catalog is served while the agent is away';
    },
  },
  {
    rules: ['MSG15', 'MSG16', 'MSG17', 'CHA3'],
    async run(ctx) {
      const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
      const text = `# **Deploy** the ${ctx.text('thing')} to production, and then tell everybody about it at length\nsecond line`;
      const echo = await device.send(text, { ...ctx.lane, auto_thread: true });
      if (echo.payload.code === 'unsupported') throw need('threads');
      must('MSG15', typeof echo.thread_id === 'string', `the echo's thread_id is ${String(echo.thread_id)}`);
      for (const one of [device, other]) {
        const about = one.frames(
          (frame) =>
            (frame.type === 'channel.created' && frame.payload.thread_id === echo.thread_id) ||
            frame.payload.message_id === echo.payload.message_id,
        );
        if (one === other && about.length < 2) about.push(await one.next((frame) => frame.payload.message_id === echo.payload.message_id));
        const order = one.frames(
          (frame) => frame.payload.thread_id === echo.thread_id || frame.payload.message_id === echo.payload.message_id,
        );
        like('MSG16', order[0], { type: 'channel.created', payload: { auto: true, kind: 'thread', parent_chat_id: ctx.lane.chat_id } });
        like('MSG16', order[1], { type: 'message', chat_id: ctx.lane.chat_id, thread_id: echo.thread_id });
      }
      const { name } = device.frames('channel.created').at(-1)!.payload as { name?: string };
      must(
        'MSG17',
        typeof name === 'string' && [...name].length <= 60 && !/[#*\n]/.test(name) && name.startsWith('Deploy the'),
        `the title is ${JSON.stringify(name)}`,
      );
      like('CHA3', await device.history({ chat_id: ctx.lane.chat_id, thread_id: echo.thread_id! }), {
        type: 'history',
        thread_id: echo.thread_id,
      });
      const flat = await device.send(ctx.text('in the thread'), {
        chat_id: ctx.lane.chat_id,
        thread_id: echo.thread_id!,
        auto_thread: true,
      });
      like('MSG15', flat, { type: 'message', thread_id: echo.thread_id });
      return `${String(echo.thread_id)} was made, named ${JSON.stringify(name)}; in a thread auto_thread is not looked at`;
    },
  },
  {
    rules: ['DEL1', 'DEL2', 'DEL6', 'SYN6'],
    async run(ctx) {
      const away = await ctx.join('away');
      const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
      const from = (await device.sync()).payload.cursor!;
      device.received.skip();
      const kept = await device.send(ctx.text('kept'), ctx.lane);
      const secret = ctx.text('secret');
      const echo = await device.send(secret, ctx.lane);
      const ids = [echo.payload.message_id!, 'm_none'];
      await away.next((frame) => frame.payload.message_id === ids[0]);
      away.cut();
      const answer = await device.request('message.delete', { message_ids: ids }, ctx.lane);
      if (answer.payload.code === 'unsupported') throw need('message.delete');
      like('DEL1', answer, { type: 'message.deleted', payload: { message_ids: ids } });
      like('DEL1', await other.next('message.deleted'), { id: undefined, payload: { message_ids: ids } });
      const all = await device.historyAll(ctx.lane);
      must(
        'DEL2',
        !all.some(({ message_id }) => message_id === ids[0]) && all.some(({ message_id }) => message_id === kept.payload.message_id),
        'history',
      );
      device.received.skip();
      await device.sync(from);
      const replayed = device.received.rest().map(({ frame }) => frame);
      must(
        'SYN6',
        !replayed.some(({ payload }) => payload.message_id === ids[0] || payload.text === secret),
        `sync replays ${shown(replayed)}`,
      );
      const search = await device.request('search', { query: secret, scope: 'all' });
      must('DEL2', search.type !== 'search.results' || !JSON.stringify(search.payload.hits).includes(ids[0]!), 'search finds it');
      await away.join();
      await away.sync();
      must(
        'DEL6',
        away.frames('message.deleted').some(({ payload }) => payload.message_ids?.includes(ids[0]!) === true),
        'a device that was away was not told',
      );
      like('DEL1', await device.request('message.delete', { message_ids: ids }, ctx.lane), { type: 'message.deleted' });
      return 'gone from history, sync and search; everyone is told, also one that was away; again is the same';
    },
  },
  {
    rules: ['DEL3', 'LNK41'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const echo = await device.send(ctx.text('to be told'), ctx.lane);
      actor.agent.received.skip();
      const answer = await device.request('message.delete', { message_ids: [echo.payload.message_id!] }, ctx.lane);
      if (answer.payload.code === 'unsupported') throw need('message.delete');
      const told = await actor.agent.next('message.deleted');
      like('DEL3', told, { payload: { message_ids: [echo.payload.message_id] }, seq: Number.isSafeInteger });
      return `the agent was sent message.deleted, seq ${told.seq}`;
    },
  },
  {
    rules: ['DEL5'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const { turn } = await actor.turn(device, ctx.text('deleted while it runs'), ctx.lane);
      turn.start();
      turn.delta('some');
      const { message_id } = (await device.next('message.update')).payload;
      const answer = await device.request('message.delete', { message_ids: [message_id!] }, ctx.lane);
      if (answer.payload.code === 'unsupported') throw need('message.delete');
      turn.delta(' more');
      turn.stop();
      turn.message('the turn goes on');
      turn.end();
      await device.next('agent.idle');
      const after = device.received.all.slice(device.received.all.findIndex(({ frame }) => frame.type === 'message.deleted') + 1);
      const about = after.filter(({ frame }) => frame.payload.message_id === message_id);
      must('DEL5', about.length === 0, `after message.deleted came ${shown(about.map(({ frame }) => frame))}`);
      must(
        'DEL5',
        after.some(({ frame }) => frame.payload.text === 'the turn goes on'),
        'the turn did not go on',
      );
      const page = await device.history({ ...ctx.lane, limit: 10 });
      must('DEL5', !page.payload.messages!.some((one) => one.message_id === message_id), 'it is in history');
      return 'nothing of it after message.deleted; the turn went on';
    },
  },
  {
    rules: ['DEL7'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const answer = await device.request('message.delete', { message_ids: ['m_1'] }, { chat_id: 'android:chan_0' });
      refused('DEL7', answer, 'not_found');
      return 'error not_found';
    },
  },
  {
    rules: ['HIS1', 'HIS2', 'HIS3', 'HIS4', 'HIS5', 'HIS8'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const lane = await ctx.channel().catch(() => ctx.lane);
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) ids.push((await device.send(ctx.text(`page ${i}`), { ...lane })).payload.message_id!);
      const newest = (await device.history({ ...lane, limit: 50 })).payload.messages!.map(({ message_id }) => message_id!);
      must('HIS1', newest.filter((id) => ids.includes(id)).join() === ids.join(), 'a page is not oldest first');
      const whole = await device.historyAll(lane, 50);
      const one = await device.historyAll(lane, 3);
      const idsOf = (rows: readonly { message_id?: string }[]) => rows.map(({ message_id }) => message_id).join();
      must('HIS8', idsOf(whole) === idsOf(one), 'pages of 3 and of 50 do not give the same');
      const page = await device.history({ ...lane, before_message_id: ids[6]!, limit: 2 });
      must('HIS4', !page.payload.messages!.some(({ message_id }) => message_id === ids[6]), 'before_message_id is in its own page');
      must(
        'HIS1',
        page.payload.oldest_message_id === page.payload.messages![0]?.message_id,
        `oldest_message_id is ${String(page.payload.oldest_message_id)}`,
      );
      for (const [limit, wanted] of [
        [0, 1],
        [-3, 1],
        [2.9, 2],
        [1e9, Math.min(200, whole.length)],
      ] as const) {
        const { messages } = (await device.history({ ...lane, limit })).payload;
        must('HIS2', messages!.length === wanted, `limit ${limit} gave ${messages!.length}, wanted ${wanted}`);
      }
      const exact = await device.history({ ...lane, limit: Math.min(200, whole.length) });
      must(
        'HIS3',
        exact.payload.has_more === whole.length > 200,
        `has_more is ${String(exact.payload.has_more)} for a page that is all there is`,
      );
      if (whole.length > 1) {
        const less = await device.history({ ...lane, limit: whole.length - 1 });
        must('HIS3', less.payload.has_more === true, 'has_more is not true for all but one');
      }
      refused('HIS5', await device.history({ ...lane, before_message_id: 'm_none' }), 'not_found');
      refused('HIS5', await device.history({ chat_id: 'android:chan_0' }), 'not_found');
      refused('HIS5', await device.history({ ...lane, thread_id: 't_0' }), 'not_found');
      return `${whole.length} messages, the same by 3 and by 50; limits clamped; has_more exact at the end`;
    },
  },
  {
    rules: ['HIS4', 'HIS8'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const ids: string[] = [];
      for (let i = 0; i < 4; i++) ids.push((await device.send(ctx.text(`place ${i}`), ctx.lane)).payload.message_id!);
      const gone = await device.request('message.delete', { message_ids: [ids[2]!] }, ctx.lane);
      if (gone.payload.code === 'unsupported') throw need('message.delete');
      const page = await device.history({ ...ctx.lane, before_message_id: ids[2]!, limit: 1 });
      like('HIS4', page, { type: 'history' });
      must(
        'HIS4',
        page.payload.messages![0]?.message_id === ids[1],
        `before a deleted message comes ${page.payload.messages![0]?.message_id}`,
      );
      return 'a deleted before_message_id still has its place';
    },
  },
];
