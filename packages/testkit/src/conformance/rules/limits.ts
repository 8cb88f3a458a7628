import { type Check, comesOf, has, like, must, need, refused } from '../check.js';

const KiB = 1024;

/** Errors, close codes and limits. */
export const limits: readonly Check[] = [
  {
    rules: ['LIM1', 'CLS8'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const ping = (bytes: number) => {
        const frame = JSON.stringify({ type: 'ping', id: 1, payload: { ts: 1, x: '' } });
        return frame.replace('"x":""', `"x":"${'x'.repeat(bytes - frame.length)}"`);
      };
      like('LIM1', (await comesOf(device, ctx.lane, ping(256 * KiB)))[0], { type: 'pong' });
      device.raw(ping(256 * KiB + 1));
      const { code } = await device.closed();
      must('CLS8', code === 1009, `a frame of 256 KiB and a byte: closed with ${code}`);
      const early = ctx.device('early');
      await early.connect();
      early.raw(
        JSON.stringify({ type: 'hello', payload: { token: ctx.device_token, device_id: early.device_id, x: 'x'.repeat(64 * KiB) } }),
      );
      const first = await early.closed();
      must('LIM1', first.code === 1009, `a first frame over 64 KiB: closed with ${first.code}`);
      return '256 KiB are read, a byte more is 1009; so is a first frame over 64 KiB';
    },
  },
  {
    rules: ['LIM2'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const text = `${ctx.text('é').padEnd(64, ' ')}${'é'.repeat(32 * KiB)}`;
      const most = Buffer.from(text)
        .subarray(0, 64 * KiB)
        .toString()
        .replace(/\ufffd+$/, '');
      const filled = most.padEnd(most.length + 64 * KiB - Buffer.byteLength(most), 'x');
      like('LIM2', await device.send(filled, ctx.lane), { type: 'message', payload: { text: filled } });
      refused('LIM2', await device.send(`${filled}x`, ctx.lane), 'unsupported', 'text');
      return '64 KiB of UTF-8 are taken, a byte more is refused naming text';
    },
  },
  {
    rules: ['LIM3'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const nested = (levels: number) => `{"id":5,"type":"ping","payload":{"ts":1,"x":${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}}}`;
      like('LIM3', (await comesOf(device, ctx.lane, nested(32)))[0], { type: 'pong', id: 5 });
      like('LIM3', refused('LIM3', (await comesOf(device, ctx.lane, nested(33)))[0], 'unsupported'), { id: 5 });
      refused('LIM3', (await comesOf(device, ctx.lane, '['.repeat(100_000)))[0], 'unsupported');
      return '32 levels are read, 33 refused with the id, 100,000 refused';
    },
  },
  {
    rules: ['LIM4'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const { chat_id } = ctx.lane;
      refused('LIM4', await device.send(ctx.text(), { chat_id, client_ref: 'r'.repeat(65) }), 'unsupported', 'client_ref');
      refused('LIM4', await device.request('history', {}, { chat_id: 'c'.repeat(129) }), 'unsupported', 'chat_id');
      refused('LIM4', await device.request('search', { query: 'q'.repeat(1025) }), 'unsupported', 'query');
      const many = Array.from({ length: 1001 }, (_, i) => `m_${i}`);
      refused('LIM4', await device.request('message.delete', { message_ids: many }, ctx.lane), 'unsupported', 'message_ids');
      return 'client_ref, ids, queries and lists over their limits are refused by name';
    },
  },
  {
    rules: ['LIM5'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own({ sends_burst: 3, sends_per_second: 1 });
      const device = await space.join('phone');
      const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => device.send(`m${i}`)));
      const taken = answers.filter(({ type }) => type === 'message').length;
      must('LIM5', taken >= 3 && taken < 6, `${taken} of 6 sends were taken with sends_burst 3`);
      return `with the tenant's own sends_burst 3, ${taken} of 6 sends were taken`;
    },
  },
  {
    rules: ['LIM6', 'ERR4'],
    alone: true,
    async run(ctx) {
      const device = await ctx.join('eager');
      // To a channel that does not exist: nothing is stored, and the rate counts.
      const sends = Array.from({ length: 420 }, (_, i) => device.send(`no ${i}`, { chat_id: 'android:chan_0', within_ms: 30_000 }));
      const answers = await Promise.all(sends);
      const codes = answers.map(({ payload }) => payload.code);
      const limited = answers.filter(({ payload }) => payload.code === 'rate_limited');
      must('LIM6', limited.length > 0, `420 sends at once: ${[...new Set(codes)].join()}`);
      for (const error of limited)
        must('ERR4', Number(error.payload.retry_after_ms) >= 1, `retry_after_ms ${error.payload.retry_after_ms}`);
      return `of 420 sends at once ${limited.length} were rate_limited, retry_after_ms ${limited[0]!.payload.retry_after_ms}`;
    },
  },
  {
    rules: ['LIM7', 'CLS6'],
    alone: true,
    async run(ctx) {
      const device = await ctx.join('flood');
      // Answers are counted by hand: thousands of them.
      let frames = 0;
      for (; frames < 4_000 && device.connected; frames++) {
        device.raw('{"type":"ping"}');
        if (frames % 500 === 499) await ctx.quiet(1);
      }
      const { code } = await device.closed();
      const limited = device.frames('error').filter(({ payload }) => payload.code === 'rate_limited');
      must('LIM7', limited.length > 0, 'no frame was rate_limited');
      must('LIM7', device.frames('pong').length < frames, 'every frame had its effect');
      must('CLS6', code === 4429, `closed with ${code}`);
      return `${device.frames('pong').length} pongs, ${limited.length} rate_limited, then 4429`;
    },
  },
  {
    rules: ['LIM8'],
    // Whoever has failed so often is not let in for a while.
    alone: true,
    slow: true,
    async run(ctx) {
      for (let i = 0; i < 40; i++) {
        const device = ctx.device('guessing', { token: `iris-device.NoSuchTenant0.guess-${i}-0123456789` });
        await device.connect();
        const error = await device.hello();
        if (!has(error, { payload: { code: 'rate_limited' } })) continue;
        must('LIM8', i >= 3, `limited after ${i} failures`);
        must('LIM8', Number(error.payload.retry_after_ms) >= 1, 'without retry_after_ms');
        return `rate_limited after ${i} failed hellos of this run's address`;
      }
      must('LIM8', false, '40 failed hellos, all looked at');
      return '';
    },
  },
  {
    rules: ['LIM9', 'CLS10'],
    alone: true,
    async run(ctx) {
      const sockets = [];
      const refusedWith: number[] = [];
      for (let i = 0; i < 215; i++) {
        const wire = await ctx
          .door(0)({
            message() {},
            ping() {},
            closed: (code) => {
              refusedWith.push(code);
              ctx.target.patience.stir();
            },
          })
          .catch(() => undefined);
        sockets.push(wire);
      }
      await ctx.target.patience.wait(() => refusedWith[0], { describe: () => '215 sockets of one address, none closed' });
      for (const wire of sockets) wire?.close();
      must('CLS10', refusedWith[0] === 1013, `closed with ${refusedWith[0]}`);
      return `of 215 sockets before hello ${refusedWith.filter((code) => code === 1013).length} were closed with 1013`;
    },
  },
  {
    rules: ['LIM10'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own({ connections: 2 });
      const [one] = [await space.join('one'), await space.join('two')];
      const third = space.device('three');
      await third.connect();
      refused('LIM10', await third.hello(), 'rate_limited');
      one.close();
      await third.closed().catch(() => {});
      return 'two connections of a quota of two; the third is rate_limited';
    },
  },
  {
    rules: ['LIM11'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own({ channels: 3 });
      const device = await space.join('phone');
      const made = [];
      for (let i = 0; i < 4; i++) made.push(await device.request('channel.create', { name: `Channel ${i}` }));
      if (made.every(({ payload }) => payload.code === 'unsupported')) throw need('channel.create');
      refused('LIM11', made.at(-1), 'rate_limited');
      return `the ${made.findIndex(({ type }) => type === 'error') + 1}. channel beside the default of a quota of three is rate_limited`;
    },
  },
  {
    rules: ['LIM13'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own({ running_turns: 1 });
      const other = await space.channel();
      const agent = space.agent();
      await agent.connect();
      const device = await space.join('phone');
      await device.send('one');
      const first = await agent.turn();
      await device.send('two', { ...other });
      const waiting = await agent.turn({ within_ms: 400 }).catch(() => undefined);
      must('LIM13', waiting === undefined, 'a second turn started over a quota of one');
      first.end();
      const second = await agent.turn();
      must('LIM13', second.text === 'two', `then came ${second.text}`);
      second.end();
      await device.next('agent.idle');
      return 'with a quota of one the turn of another lane waits for the end of the first';
    },
  },
  {
    rules: ['LIM14'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own({ waiting_per_lane: 3 });
      const device = await space.join('phone');
      const answers = [];
      for (let i = 0; i < 6; i++) answers.push(await device.send(`waiting ${i}`));
      refused('LIM14', answers.at(-1), 'rate_limited');
      const taken = answers.filter(({ type }) => type === 'message').length;
      must('LIM14', taken >= 3, `only ${taken} were taken`);
      return `${taken} wait with a quota of three; the next is rate_limited`;
    },
  },
];
