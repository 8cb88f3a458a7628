import { type Check, like, must, refused, shown } from '../check.js';

/** The agent link. */
export const link: readonly Check[] = [
  {
    rules: ['LNK1', 'LNK12', 'LNK14', 'LNK3'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      const ack = await agent.connect();
      like('LNK14', ack, {
        type: 'hello.ack',
        payload: {
          link_id: (x: unknown) => typeof x === 'string',
          epoch: (x: unknown) => Number.isSafeInteger(x) && (x as number) >= 1,
          last_seq: 0,
          heartbeat_ms: Number.isSafeInteger,
          turns: [],
          channels: Array.isArray,
        },
      });
      must('LNK1', agent.connected, 'it is not connected');
      const other = ctx.agent();
      must('LNK3', (await other.connect()).type === 'hello.ack', 'the first tenant’s agent was not let in');
      must('LNK3', agent.connected, 'another tenant’s agent took the link');
      return `epoch ${String(ack.payload.epoch)}, heartbeat ${String(ack.payload.heartbeat_ms)} ms`;
    },
  },
  {
    rules: ['LNK2'],
    needs: ['agent'],
    async run(ctx) {
      const door = ctx.target.doors[0]!;
      const silent = { message() {}, ping() {}, closed() {} };
      const bad = 'iris-agent.NoSuchTenant0.0123456789abcdef0123';
      const ways: string[] = [];
      let ended: string | undefined;
      const end = (how: string) => {
        ended = how;
        ctx.target.patience.stir();
      };
      void door.agent!(bad)({ ...silent, closed: (code) => end(String(code)) }).then(
        (wire) => wire.send(JSON.stringify({ v: 1, type: 'hello', payload: { agent: 'x', install_id: 'x', boot_id: 'x', last_seq: 0 } })),
        (error: Error) => end(error.message),
      );
      const outcome = await ctx.target.patience.wait(() => ended, {
        describe: () => 'a link with a bad token is neither refused nor closed',
      });
      must('LNK2', outcome.includes('401') || outcome === '4401', `a bad token in the header: ${outcome}`);
      ways.push(outcome);
      const stranger = ctx.agent({ dial: door.agent!(undefined), token: bad });
      refused('LNK2', await stranger.connect(), 'auth');
      const { code } = await stranger.closed();
      must('LNK2', code === 4401, `closed with ${code}`);
      return `in the header: ${ways.join()}; in hello: error auth, 4401`;
    },
  },
  {
    rules: ['LNK1', 'LNK2'],
    needs: ['agent'],
    async run(ctx) {
      const agent = ctx.agent({ dial: ctx.target.doors[0]!.agent!(undefined), token: ctx.agent_token! });
      like('LNK1', await agent.connect(), { type: 'hello.ack' });
      return 'the token in hello opens the link too';
    },
  },
  {
    rules: ['LNK4'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const actor = await space.actor();
      const device = await space.join('phone');
      const { turn } = await actor.turn(device, ctx.text('large'));
      turn.toolStart(0, 'terminal', { args: { text: 'x'.repeat(300 * 1024) } });
      await device.next('tool.start');
      turn.end();
      await device.next('agent.idle');
      actor.agent.raw(JSON.stringify({ v: 1, type: 'ping', payload: { ts: 1, x: 'x'.repeat(1024 * 1024) } }));
      const { code } = await actor.agent.closed();
      must('LNK4', code === 1009, `a frame over 1 MiB: closed with ${code}`);
      return '300 KiB are taken; over 1 MiB is 1009';
    },
  },
  {
    rules: ['LNK5', 'LNK6', 'LNK7', 'LNK13', 'LNK15', 'LNK26', 'LNK31', 'LNK35', 'LNK8', 'LNK9'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      await agent.connect();
      const device = await space.join('phone', { caps: { cursors: true } });
      await device.send('across links');
      const turn = await agent.turn();
      turn.start();
      turn.delta('before ');
      await device.next('message.update');
      agent.cut();
      // Said while there is no link: kept, and sent by the next one.
      turn.delta('between ');
      turn.commentary('said in between');
      await agent.connect(space.agentDoor(1));
      like('LNK7', await device.next('commentary'), { payload: { text: 'said in between' } });
      turn.delta('after');
      turn.stop();
      turn.end();
      like('LNK35', await device.next('message.stop'), { payload: { final_text: 'before between after' } });
      await device.next('agent.idle');
      must('LNK31', device.frames((frame) => frame.payload.interrupted === true).length === 0, 'devices saw an interruption');
      await ctx.target.patience.wait(() => (agent.unacked.length === 0 ? true : undefined), {
        describe: () => `${agent.unacked.length} frames were never acked`,
      });
      agent.restart({ install: true });
      like('LNK13', await agent.connect(), { type: 'hello.ack', payload: { last_seq: 0 } });
      must('LNK5', agent.faults.length === 0, agent.faults.join('; '));
      return 'a link lost in mid-answer: resumed through another edge, each frame once, everything acked; a new install starts at 0';
    },
  },
  {
    rules: ['LNK16', 'CLS5'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const older = space.agent();
      await older.connect();
      const newer = space.agent({ door: 1 });
      await newer.connect();
      const { code } = await older.closed();
      must('LNK16', code === 4409, `the older link was closed with ${code}`);
      must('LNK16', newer.epoch > older.epoch, `epoch ${newer.epoch} after ${older.epoch}`);
      return `epoch ${newer.epoch} closes ${older.epoch} with 4409`;
    },
  },
  {
    rules: ['LNK11', 'LNK45'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      await agent.connect();
      agent.say('someday.later', { x: 1 }, { durable: true });
      agent.say('someday.ever', { x: 1 });
      await ctx.target.patience.wait(() => (agent.unacked.length === 0 ? true : undefined), {
        describe: () => 'an unknown type with a seq was not acked',
      });
      const answer = await agent.request('history', { limit: 'many' }, { chat_id: 'android:default' });
      like('LNK45', answer, { type: 'error', id: (id: unknown) => id !== undefined });
      return 'an unknown type is acked and ignored; a bad request is refused with its id';
    },
  },
  {
    rules: ['LNK38', 'CMD2'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      await agent.connect();
      like('LNK38', await agent.next('commands.catalog'), { type: 'commands.catalog', payload: {} });
      const commands = [{ name: '/conform', description: 'what it was asked for' }];
      agent.say('commands.catalog', { commands, rev: 'r1' });
      await ctx.target.patience.wait(() => (agent.unacked.length === 0 ? true : undefined), {
        describe: () => 'the catalog was not acked',
      });
      const device = await space.join('phone');
      const names = ((await device.request('commands.catalog', {})).payload.commands as { name: string }[]).map(({ name }) => name);
      must('CMD2', names.includes('/conform'), `the catalog offers ${names.join(' ') || 'nothing'}`);
      return 'a new process is asked for its commands, and devices are offered what it answers';
    },
  },
  {
    rules: ['LNK25', 'LNK27'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const { turn } = await actor.turn(device, ctx.text('twice'), ctx.lane);
      const text = ctx.text('the same final');
      const own = turn.message(text);
      turn.message(text);
      turn.end();
      await device.next('agent.idle');
      const finals = device.frames('message').filter(({ payload }) => payload.text === text);
      must('LNK27', finals.length === 1, `the same final came ${finals.length} times`);
      must('LNK25', finals[0]!.payload.message_id !== own, `the agent's own id ${own} is on the wire`);
      return `${own} is ${finals[0]!.payload.message_id} on the wire; said twice, it is one message`;
    },
  },
  {
    rules: ['LNK39'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const echo = await device.send(ctx.text('remember'), ctx.lane);
      device.received.skip();
      const page = await actor.agent.request('history', { limit: 5 }, ctx.lane);
      like('LNK39', page, { type: 'history' });
      must(
        'LNK39',
        page.payload.messages!.some(({ message_id }) => message_id === echo.payload.message_id),
        `history says ${shown([page])}`,
      );
      await device.request('ping', {});
      must('LNK39', !device.received.rest().some(({ frame }) => frame.type === 'history'), 'devices were told');
      const found = await actor.agent.request('search', { query: echo.payload.text, scope: 'all' });
      like('LNK39', found, { type: 'search.results' });
      return 'history and search, answered to the agent alone';
    },
  },
  {
    rules: ['LNK40'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const grant = await actor.agent.request('media.request', { kind: 'image', mime: 'image/png', size: 70, filename: 'dot.png' });
      like('LNK40', grant, {
        type: 'media.grant',
        payload: {
          media_id: (x: unknown) => typeof x === 'string',
          url: (x: unknown) => typeof x === 'string',
          expires_at: Number.isSafeInteger,
        },
      });
      return `granted ${String(grant.payload.media_id)}`;
    },
  },
];
