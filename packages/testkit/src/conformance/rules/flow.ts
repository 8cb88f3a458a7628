import { classOf } from '../../frames.js';
import { type Check, like, must, refused, shown, watermarkOf } from '../check.js';

/** Keepalive and optional abilities. */
export const kee: readonly Check[] = [
  {
    rules: ['KEE1', 'KEE3'],
    async run(ctx) {
      const device = await ctx.join('phone');
      for (const ts of [0, -1, 1724000000000, 1.5, Number.MAX_SAFE_INTEGER, 1e-7])
        like('KEE1', await device.request('ping', { ts }), {
          type: 'pong',
          payload: { ts, server_ts: (x: unknown) => Number.isSafeInteger(x) },
        });
      like('KEE1', await device.request('ping', {}), { type: 'pong', payload: { ts: undefined } });
      device.received.skip();
      device.raw('{"type":"ping","id":"big","payload":{"ts":9007199254740993}}');
      refused('KEE3', await device.next(({ id }) => id === 'big'), 'unsupported', 'ts');
      return 'ts comes back exactly, with server_ts; one beyond 2^53 is refused';
    },
  },
  {
    rules: ['KEE4'],
    needs: ['admin'],
    seconds: 30,
    async run(ctx) {
      const space = await ctx.own();
      const deaf = await space.join('deaf');
      deaf.autoPong(false);
      const begun = ctx.target.patience.now();
      await deaf.closed({ within_ms: 20_000 + 6_000 + ctx.target.slack_ms });
      return `dropped ${ctx.target.patience.now() - begun} ms after its last pong`;
    },
  },
  {
    rules: ['KEE5'],
    needs: ['admin'],
    seconds: 30,
    async run(ctx) {
      const space = await ctx.own();
      const quiet = await space.join('quiet');
      await ctx.quiet(27_000);
      must('KEE5', quiet.connected, 'a device that answers WebSocket pings was dropped');
      return 'still connected after 27 s of nothing but pongs';
    },
  },
  {
    rules: ['CAP2', 'ENV18'],
    async run(ctx) {
      const [with_, without] = [await ctx.join('phone', { caps: { cursors: true } }), await ctx.join('tablet')];
      const echo = await with_.send(ctx.text(), ctx.lane);
      must('CAP2', Number.isSafeInteger(echo.cursor), `a live message came with the cursor ${echo.cursor}`);
      const same = await without.next((frame) => frame.payload.message_id === echo.payload.message_id);
      must('ENV18', same.cursor === undefined, `without the cap a live message has the cursor ${same.cursor}`);
      return `cursor ${echo.cursor} with the cap, none without`;
    },
  },
  {
    rules: ['CAP3', 'CAP4'],
    async run(ctx) {
      const device = ctx.device('acker', { caps: { cursors: true } });
      device.autoAck(false);
      await device.join();
      await device.sync();
      const first = await device.send(ctx.text(), ctx.lane);
      const second = await device.send(ctx.text(), ctx.lane);
      like('CAP4', await device.request('ack', { cursor: second.cursor! }), { type: 'ack', payload: { ok: true } });
      like('CAP4', await device.request('ack', { cursor: first.cursor! }), { type: 'ack', payload: { ok: true } });
      const beyond = await device.request('ack', { cursor: Number.MAX_SAFE_INTEGER });
      must('CAP3', beyond.type === 'ack' || beyond.type === 'error', `ack above the head: ${beyond.type}`);
      const mark = await watermarkOf(ctx, device, second.cursor!);
      must('CAP3', mark >= second.cursor!, `acknowledged ${second.cursor}, then ${first.cursor}; the watermark is ${mark}`);
      const done = await device.sync();
      must(
        'CAP3',
        mark <= done.payload.cursor! && done.payload.reset !== true,
        `the watermark ${mark} is above the head ${done.payload.cursor}`,
      );
      return `acks of ${second.cursor}, ${first.cursor} and 2^53-1 leave the watermark at ${mark}`;
    },
  },
  {
    rules: ['CAP5'],
    seconds: 8,
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own();
      const device = await space.join('phone');
      await device.sync();
      await device.send(ctx.text());
      const judge = await space.join('judge', { caps: { cursors: true } });
      const head = (await judge.sync()).payload.cursor!;
      let mark = 0;
      for (let i = 0; i < 8 && mark < head; i++) {
        await ctx.quiet(1_000);
        // Asked from outside: what the device would be told if it came again, which a second device cannot see. So it comes again.
        if (i < 6) continue;
        device.cut();
        mark = (await device.join()).payload.sync_cursor!;
      }
      must('CAP5', mark >= head, `seven seconds of pongs after, the watermark is ${mark} of ${head}`);
      return `the watermark has reached ${mark} by pongs alone`;
    },
  },
  {
    rules: ['CAP7', 'CAP8', 'CAP9'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const [plain, delta] = [await ctx.join('phone'), await ctx.join('tablet', { caps: { delta: true } })];
      const { turn } = await actor.turn(plain, ctx.text('in deltas'), ctx.lane);
      turn.start();
      let text = '';
      let shownText = '';
      for (const more of ['Grüße ', '👨‍👩‍👧 und ', '漢字 ', 'bis ', 'zum Ende']) {
        turn.delta(more);
        text += more;
        const frame = await delta.next(['message.delta', 'message.update']);
        if (frame.type === 'message.update') shownText = frame.payload.text!;
        else {
          must('CAP8', frame.payload.offset === shownText.length, `offset ${frame.payload.offset} after ${shownText.length} code units`);
          must('CAP8', !/[\ud800-\udbff]$/.test(frame.payload.text!), 'a delta splits a character');
          shownText += frame.payload.text!;
        }
        must('CAP9', text.startsWith(shownText), `the deltas make ${JSON.stringify(shownText)}, the agent said ${JSON.stringify(text)}`);
      }
      turn.stop();
      turn.end();
      await delta.next('agent.idle');
      const deltas = delta.frames('message.delta').length;
      must('CAP7', deltas > 0, 'no message.delta came');
      must('CAP7', plain.frames('message.delta').length === 0, 'a device without the cap got message.delta');
      return `${deltas} deltas make the text; without the cap none came`;
    },
  },
  {
    rules: ['CAP10'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const [plain, curious] = [await ctx.join('phone'), await ctx.join('tablet', { caps: { reasoning: true } })];
      const { turn } = await actor.turn(plain, ctx.text('thinking'), ctx.lane);
      turn.start();
      turn.reason('first this, ');
      like('CAP10', await curious.next(['reasoning.delta', 'message.stop']), { type: 'reasoning.delta' });
      turn.reason('then that');
      turn.delta('done');
      turn.stop();
      turn.end();
      like('CAP10', await curious.next('message.stop'), { payload: { reasoning: 'first this, then that' } });
      await plain.next('agent.idle');
      const deltas = curious.frames('reasoning.delta');
      must('CAP10', deltas.length > 0, 'no reasoning.delta came');
      must('CAP10', plain.frames('reasoning.delta').length === 0, 'a device without the cap got reasoning.delta');
      return `${deltas.length} reasoning.delta, then message.stop with the whole`;
    },
  },
];

/** Classes of frames, order, and `sync`. */
export const ord: readonly Check[] = [
  {
    rules: ['OUT7', 'ORD3', 'ENV25', 'ORD1'],
    async run(ctx) {
      const devices = [
        await ctx.join('phone', { caps: { cursors: true } }),
        await ctx.join('tablet', { door: 1, caps: { cursors: true } }),
        await ctx.join('desk', { door: 1 }),
      ] as const;
      const texts = Array.from({ length: 10 }, (_, i) => ctx.text(`both ${i}`));
      const echoes = await Promise.all(texts.map((text, i) => devices[i % 2]!.send(text, ctx.lane)));
      const mine = (device: (typeof devices)[number]) =>
        device.frames('message').filter(({ payload }) => texts.includes(payload.text ?? ''));
      for (const device of devices)
        await ctx.target.patience.wait(() => (mine(device).length >= 10 ? true : undefined), {
          describe: () => `${device.device_id} got ${mine(device).length} of 10 messages`,
        });
      const [a, b, c] = devices.map((device) =>
        mine(device)
          .map(({ payload }) => payload.message_id)
          .join(),
      );
      must('ORD3', a === b && b === c, `one saw ${a}, another ${b}, the third ${c}`);
      const page = await devices[2].history({ ...ctx.lane, limit: 100 });
      const told = page.payload
        .messages!.filter(({ text }) => texts.includes(text ?? ''))
        .map(({ message_id }) => message_id)
        .join();
      must('ORD3', told === a, `history has ${told}, the devices saw ${a}`);
      must(
        'ENV25',
        echoes.every(({ id }) => id !== undefined),
        'an echo has no id',
      );
      const rest = mine(devices[2]);
      must(
        'ENV25',
        rest.every(({ id }) => id === undefined),
        'another device was told an id',
      );
      return 'ten messages of two devices: one order on three devices and in history';
    },
  },
  {
    rules: ['ORD2'],
    async run(ctx) {
      const device = await ctx.join('phone', { caps: { cursors: true } });
      const texts = Array.from({ length: 10 }, (_, i) => ctx.text(`pipelined ${i}`));
      const answers = texts.map((text) => device.send(text, ctx.lane));
      const page = device.history({ ...ctx.lane, limit: 100 });
      const cursors = (await Promise.all(answers)).map(({ cursor }) => cursor!);
      must(
        'ORD2',
        cursors.every((cursor, i) => i === 0 || cursor > cursors[i - 1]!),
        `their cursors are ${cursors.join()}`,
      );
      const told = (await page).payload.messages!.map(({ text }) => text).filter((text) => texts.includes(text ?? ''));
      must('ORD2', told.join() === texts.join(), `history, asked behind them, has ${told.join()}`);
      return 'ten sends at once take effect in their order, and history behind them has all';
    },
  },
  {
    rules: ['OUT1', 'OUT2', 'OUT3', 'OUT5'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const away = await ctx.join('away');
      await away.sync();
      await ctx.quiet(1);
      away.cut();
      const phone = await ctx.join('phone', { caps: { cursors: true } });
      const { turn } = await actor.turn(phone, ctx.text('everything'), ctx.lane);
      turn.typing();
      turn.toolStart(0);
      turn.toolProgress(0, 'running');
      turn.toolEnd(0);
      turn.commentary('looking');
      turn.start();
      turn.delta('an answer');
      await phone.next('message.update');
      turn.stop();
      turn.message('another');
      turn.say('notification', { kind: 'generic', title: 'Done', body: 'All of it', ts: 1 });
      turn.end();
      await phone.next('agent.idle');
      const durable = phone.received.all.flatMap(({ frame }) =>
        classOf(frame.type) === 'durable' && frame.cursor !== undefined && frame.chat_id === ctx.lane.chat_id ? [frame] : [],
      );
      const kinds = [
        'agent.busy',
        'tool.start',
        'tool.end',
        'commentary',
        'message.start',
        'message.stop',
        'message',
        'notification',
        'agent.idle',
      ];
      for (const type of kinds)
        must(
          'OUT1',
          durable.some((frame) => frame.type === type),
          `${type} came without a cursor`,
        );
      await away.join();
      away.received.skip();
      await away.sync();
      const replayed = away.received.rest().flatMap(({ frame }) => (frame.cursor === undefined ? [] : [frame]));
      for (const frame of durable) {
        // Compacted: only the last of these.
        if (frame.type === 'agent.busy' || (frame.type === 'agent.idle' && frame !== durable.at(-1))) continue;
        const again = replayed.find(({ cursor }) => cursor === frame.cursor);
        must('OUT2', again?.type === frame.type, `${frame.type} at ${frame.cursor} was not replayed: ${shown(replayed)}`);
      }
      for (const type of ['message.update', 'tool.progress'])
        must('OUT3', !replayed.some((frame) => frame.type === type), `${type} was replayed`);
      must('OUT5', !replayed.some(({ type }) => type === 'typing' || type === 'status'), 'a live frame was replayed');
      return `${durable.length} durable frames of nine types, all of them replayed, no live one with them`;
    },
  },
  {
    rules: ['OUT9'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const slow = await ctx.join('slow', { caps: { cursors: true } });
      const judge = await ctx.join('judge', { door: 1 });
      const lane = await ctx.channel().catch(() => ctx.lane);
      slow.pause();
      const body = 'x'.repeat(60 * 1024);
      const texts = Array.from({ length: 60 }, (_, i) => `${ctx.text(`large ${i}`)} ${body}`);
      for (const text of texts) actor.agent.say('message', { message_id: text.slice(0, 40), role: 'assistant', text }, { ...lane });
      await judge.next((frame) => frame.payload.text === texts.at(-1), { within_ms: 15_000 });
      slow.resume();
      await slow.next((frame) => frame.payload.text === texts.at(-1), { within_ms: 15_000 });
      const got = slow.frames('message').map(({ payload }) => payload.text);
      must('OUT9', got.filter((text) => texts.includes(text ?? '')).length === texts.length, `${got.length} of ${texts.length} came`);
      must('OUT9', slow.connections.length === 1, 'it had to connect again');
      return `3.5 MiB while it did not read: all ${texts.length}, in order, on the same socket (memory cannot be seen from outside)`;
    },
  },
  {
    rules: ['SYN5'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const away = await ctx.join('away');
      await away.sync();
      away.cut();
      const phone = await ctx.join('phone');
      for (let i = 0; i < 3; i++) {
        const { turn } = await actor.turn(phone, ctx.text('short'), ctx.lane);
        turn.end();
        await phone.next('agent.idle');
      }
      await away.join();
      away.received.skip();
      await away.sync();
      const replayed = away.received.rest().map(({ frame }) => frame);
      const activity = replayed.filter(
        ({ type, chat_id }) => (type === 'agent.busy' || type === 'agent.idle') && chat_id === ctx.lane.chat_id,
      );
      must('SYN5', activity.length === 1 && activity[0]!.type === 'agent.idle', `three turns were replayed with ${shown(activity)}`);
      return 'of three turns one agent.idle is replayed';
    },
  },
  {
    rules: ['SYN7'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const away = await ctx.join('away');
      await away.sync();
      away.cut();
      const phone = await ctx.join('phone');
      const { turn } = await actor.turn(phone, ctx.text('running'), ctx.lane);
      turn.start();
      turn.delta('so far');
      const { message_id } = (await phone.next('message.update')).payload;
      await away.join();
      await away.sync();
      const starts = away.received.all.filter(
        ({ connection, frame }) => connection === 2 && frame.type === 'message.start' && frame.payload.message_id === message_id,
      );
      const busy = away.received.all.filter(
        ({ connection, frame }) => connection === 2 && frame.type === 'agent.busy' && frame.chat_id === ctx.lane.chat_id,
      );
      must('SYN7', starts.length === 1, `message.start came ${starts.length} times`);
      must('SYN7', busy.length === 1, `agent.busy came ${busy.length} times`);
      turn.stop();
      turn.end();
      await away.next('agent.idle');
      return 'told after hello.ack, not repeated by sync';
    },
  },
  {
    rules: ['SYN8'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own({ outbox_max_frames: 20 });
      const actor = await space.actor();
      const device = await space.join('phone', { caps: { cursors: true } });
      const from = (await device.sync()).payload.cursor!;
      device.received.skip();
      for (let i = 0; i < 60; i++)
        actor.agent.say('message', { message_id: `x${i}`, role: 'cron', text: ctx.text(`old ${i}`) }, space.lane);
      await device.next((frame) => frame.type === 'message' && device.frames('message').length === 60);
      const done = await device.sync(from);
      if (done.payload.truncated !== true) throw Object.assign(new Error(), { needed: 'retention that has run' });
      const all = await device.historyAll(space.lane, 50);
      must('SYN8', all.length === 60, `history has ${all.length} of 60`);
      return 'sync.done says truncated, and history has all 60';
    },
  },
  {
    rules: ['SYN9'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const head = (await device.sync()).payload.cursor!;
      const done = await device.sync(head + 1_000_000_000);
      like('SYN9', done, {
        type: 'sync.done',
        payload: { reset: true, cursor: (cursor: unknown) => (cursor as number) >= head && (cursor as number) < head + 1_000_000 },
      });
      like('SYN9', await device.sync(head), { payload: { reset: undefined } });
      return `asked from a billion above the head: reset, and the head ${done.payload.cursor}`;
    },
  },
  {
    rules: ['SYN10', 'SYN12', 'SYN1'],
    async run(ctx) {
      const device = await ctx.join('phone', { caps: { cursors: true } });
      const from = (await device.sync()).payload.cursor!;
      device.received.skip();
      const old = [await device.send(ctx.text('old'), ctx.lane), await device.send(ctx.text('older'), ctx.lane)];
      device.cut();
      await device.join();
      device.received.skip();
      const writer = await ctx.join('tablet', { door: 1 });
      const syncing = device.sync(from);
      const texts = Array.from({ length: 6 }, (_, i) => ctx.text(`meanwhile ${i}`));
      await Promise.all(texts.map((text) => writer.send(text, ctx.lane)));
      const done = await syncing;
      await device.next(
        (frame) => frame.payload.text === texts.at(-1) || device.frames(({ payload }) => payload.text === texts.at(-1)).length > 0,
      );
      const here = device.received.all.filter(({ connection }) => connection === 2).map(({ frame }) => frame);
      for (const text of [...texts, ...old.map(({ payload }) => payload.text)]) {
        const count = here.filter((frame) => frame.type === 'message' && frame.payload.text === text).length;
        must('SYN10', count === 1, `${JSON.stringify(text)} came ${count} times`);
      }
      const at = here.indexOf(done);
      for (const { payload } of old)
        must(
          'SYN10',
          here.findIndex((frame) => frame.payload.message_id === payload.message_id) < at,
          'a replayed frame came after sync.done',
        );
      device.received.skip();
      await device.sync(from);
      const again = device.received
        .rest()
        .filter(({ frame }) => old.some(({ payload }) => payload.message_id === frame.payload.message_id));
      must('SYN12', again.length === 2, `asked again from ${from}, ${again.length} of 2 came`);
      return 'two replayed, six live while it ran, each once; sync.done after the replay; asked again, replayed again';
    },
  },
];
