import type { AnyFrame } from '../../frames.js';
import { type Check, like, must, need, shown } from '../check.js';

/** Streaming, read receipts, turns, stopping, steering, tools, typing, notifications: all of it with an agent. */
export const turns: readonly Check[] = [
  {
    rules: ['STR1', 'STR2', 'STR5', 'TRN1', 'TRN2', 'RCP1', 'LNK19', 'LNK20', 'LNK23', 'LNK24'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
      const { echo, turn } = await actor.turn(device, ctx.text('question'), { ...ctx.lane, accept: false });
      await ctx.quiet(100);
      const mine = (frame: AnyFrame) => frame.type === 'read.receipt' && frame.payload.message_id === echo.payload.message_id;
      must('RCP1', device.frames(mine).length === 0, 'read.receipt came before the agent accepted');
      turn.accept();
      await device.next(mine);
      like('TRN2', await other.next('agent.busy'), { chat_id: ctx.lane.chat_id, payload: { reason: 'processing' } });
      turn.busy('tool');
      like('TRN2', await other.next('agent.busy'), { payload: { reason: 'tool' } });
      turn.start();
      turn.reason('thought');
      const start = like('STR1', await other.next('message.start'), { payload: { role: 'assistant' } });
      const { message_id } = start.payload;
      turn.delta('one ');
      like('STR5', await other.next('message.update'), { payload: { message_id, text: 'one ' } });
      turn.delta('two ');
      turn.delta('three');
      turn.stop();
      for (const device_ of [device, other])
        like('STR5', await device_.next('message.stop'), { payload: { message_id, final_text: 'one two three', reasoning: 'thought' } });
      turn.end();
      like('TRN1', await other.next('agent.idle'), { chat_id: ctx.lane.chat_id });
      must(
        'RCP1',
        other.frames('read.receipt').every(({ payload }) => payload.message_id !== echo.payload.message_id),
        'another device got the sender’s read.receipt',
      );
      const all = other.frames('message.update').filter(({ payload }) => payload.message_id === message_id);
      must(
        'STR2',
        all.every(({ payload }) => 'one two three'.startsWith(payload.text!)),
        `the updates are ${shown(all)}`,
      );
      return `start, ${all.length} updates, stop; receipt at turn.accepted and to the sender alone; busy, idle`;
    },
  },
  {
    rules: ['STR4'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const { turn } = await actor.turn(device, ctx.text('fast'), ctx.lane);
      turn.start();
      const begun = ctx.target.patience.now();
      for (let i = 0; i < 60; i++) {
        turn.delta(`word${i} `);
        await ctx.quiet(15);
      }
      turn.stop();
      turn.end();
      await device.next('agent.idle');
      const took = ctx.target.patience.now() - begun;
      const updates = device.received.all.filter(({ frame }) => frame.type === 'message.update');
      const most = 2 + took / 100;
      must('STR4', updates.length <= most, `${updates.length} updates in ${took} ms`);
      must('STR4', updates.length >= 2, `only ${updates.length} updates in ${took} ms`);
      return `60 deltas in ${took} ms came as ${updates.length} updates`;
    },
  },
  {
    rules: ['STR7', 'STR8', 'LNK32', 'TOO3'],
    needs: ['admin', 'agent'],
    seconds: 36,
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      await agent.connect();
      const device = await space.join('phone');
      await device.send('lost');
      const turn = await agent.turn();
      turn.toolStart(0, 'terminal');
      turn.start();
      turn.delta('so far');
      const { message_id } = (await device.next('message.update')).payload;
      agent.cut();
      const begun = ctx.target.patience.now();
      like('STR7', await device.next('message.stop', { within_ms: 35_000 }), {
        payload: { message_id, final_text: 'so far', interrupted: true },
      });
      await device.next('agent.idle', { within_ms: 5_000 });
      const took = ctx.target.patience.now() - begun;
      const ends = device.frames('tool.end');
      must('TOO3', ends.length === 1 && ends[0]!.payload.ok === false, `tool.end: ${shown(ends)}`);
      await agent.connect();
      turn.stop({ final_text: 'so far and all the rest' });
      turn.end();
      const late = like('STR8', await device.next('message'), { payload: { message_id, text: 'so far and all the rest', late: true } });
      const page = await device.history({ ...space.lane, limit: 10 });
      const row = page.payload.messages!.find((one) => one.message_id === message_id);
      must('STR8', row?.text === late.payload.text, `history has ${JSON.stringify(row)}`);
      return `${took} ms after the link was lost: interrupted stop, tool.end ok:false, idle; the final came late and is in history`;
    },
  },
  {
    rules: ['RCP2'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      await agent.connect();
      const device = await space.join('phone');
      const echo = await device.send('read later');
      const turn = await agent.turn({ accept: false });
      device.cut();
      turn.accept();
      turn.end();
      // Behind what the agent said, by the answer to what it asks.
      await agent.request('history', { limit: 1 }, space.lane);
      await device.join(space.door(1));
      like('RCP2', await device.next('read.receipt'), { payload: { message_id: echo.payload.message_id } });
      return 'accepted while the device was away: told on its next connection';
    },
  },
  {
    rules: ['RCP3', 'RCP4', 'RCP5', 'RCP6', 'SYN11'],
    async run(ctx) {
      const lane = await ctx.channel();
      const [device, other, away] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 }), await ctx.join('away')];
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push((await device.send(ctx.text(`to be read ${i}`), { ...lane })).payload.message_id!);
      const from = (await device.sync()).payload.cursor!;
      device.received.skip();
      away.cut();
      const read = (id: string) => device.request('read.receipt', { message_id: id }, lane);
      const first = await read(ids[1]!);
      if (first.payload.code === 'unsupported') throw need('read receipts of devices');
      like('RCP5', first, { type: 'ack', payload: { ok: true } });
      const seen = () => other.frames('read.receipt').filter(({ payload }) => ids.includes(payload.message_id!));
      like('RCP4', await other.next('read.receipt'), { chat_id: lane.chat_id, payload: { message_id: ids[1] } });
      await read(ids[0]!);
      await read(ids[1]!);
      await read(ids[2]!);
      like('RCP3', await other.next('read.receipt'), { payload: { message_id: ids[2] } });
      must('RCP6', seen().length === 2, `four receipts, of them two forward, made ${seen().length} frames`);
      await away.join();
      away.received.skip();
      await away.sync();
      const replayed = away.received.rest().filter(({ frame }) => frame.type === 'read.receipt' && ids.includes(frame.payload.message_id!));
      must(
        'RCP4',
        replayed.length === 1 && replayed[0]!.frame.payload.message_id === ids[2],
        `a device that was away got ${shown(replayed.map(({ frame }) => frame))}`,
      );
      device.received.skip();
      await device.sync(from);
      must(
        'SYN11',
        !device.received.rest().some(({ frame }) => frame.type === 'read.receipt' && ids.includes(frame.payload.message_id!)),
        'its own receipts were replayed to it',
      );
      return 'forward only, one frame per other device, the latest by sync, none of its own back';
    },
  },
  {
    rules: ['TRN3', 'TRN4', 'TRN7', 'LNK20'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      for (const outcome of ['completed', 'failed', 'cancelled', 'interrupted']) {
        const { turn } = await actor.turn(device, ctx.text(outcome), ctx.lane);
        turn.typing();
        turn.start();
        turn.delta('partial');
        const { message_id } = (await device.next('message.update')).payload;
        if (outcome === 'completed') turn.stop();
        device.received.skip();
        turn.end(outcome, outcome === 'failed' ? { error: 'as it was asked to' } : {});
        await device.next('agent.idle');
        const after = device.received.all.map(({ frame }) => frame);
        const stop = after.find(({ type, payload }) => type === 'message.stop' && payload.message_id === message_id);
        must('TRN7', stop?.payload.final_text === 'partial', `${outcome} left ${shown(stop ? [stop] : [])}`);
        if (outcome === 'failed')
          must(
            'TRN7',
            after.some(({ type, payload }) => type === 'message' && payload.role === 'system'),
            'no system message says why',
          );
        await ctx.quiet(150);
        must(
          'TRN3',
          device.received.rest().every(({ frame }) => frame.type !== 'agent.idle'),
          'a second agent.idle came',
        );
      }
      return 'completed, failed, cancelled, interrupted: the partial text stays, one idle each, nothing after; a failure says why';
    },
  },
  {
    rules: ['TRN5'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const texts = [ctx.text('first'), ctx.text('second'), ctx.text('third')];
      const claims = texts.map((text) => actor.claim(text));
      for (const claim of claims) claim.catch(() => {});
      for (const text of texts) await device.send(text, ctx.lane);
      for (const [i, claim] of claims.entries()) {
        const turn = await claim;
        turn.accept();
        if (i === 0) await ctx.quiet(100);
        turn.message(`answer to ${turn.text}`);
        turn.end();
      }
      for (const text of texts) await device.next((frame) => frame.payload.text === `answer to ${text}`);
      return 'three messages, one turn at a time, in order';
    },
  },
  {
    rules: ['TRN6'],
    needs: ['admin', 'agent'],
    async run(ctx) {
      const space = await ctx.own();
      const actor = await space.actor();
      const device = await space.join('phone');
      const { turn } = await actor.turn(device, ctx.text('alone'));
      device.cut();
      turn.start();
      turn.delta('while nobody listens');
      turn.stop();
      turn.end();
      await ctx.target.patience.wait(() => (actor.agent.unacked.length === 0 ? true : undefined), { describe: () => 'not all was stored' });
      await device.join();
      await device.sync();
      like('TRN6', device.frames('message.stop').at(-1), { payload: { final_text: 'while nobody listens' } });
      return 'it went on, and its answer came by sync';
    },
  },
  {
    rules: ['TRN8', 'LNK33', 'LNK34', 'LNK18'],
    needs: ['admin', 'agent'],
    seconds: 12,
    async run(ctx) {
      const space = await ctx.own();
      const agent = space.agent();
      await agent.connect();
      const device = await space.join('phone');
      await device.send('not accepted');
      const offered = await agent.turn({ accept: false });
      must('LNK18', offered.offer.attempt === 1 && offered.offer.kind === 'chat', `turn.start says ${JSON.stringify(offered.offer)}`);
      agent.restart();
      await agent.connect();
      const again = await agent.turn({ within_ms: 8_000 });
      must(
        'LNK33',
        again.text === 'not accepted' && again.offer.attempt === 2,
        `a new boot was given ${again.text}, attempt ${String(again.offer.attempt)}`,
      );
      await device.next('agent.busy');
      agent.restart();
      await agent.connect();
      await device.next('agent.idle', { within_ms: 8_000 });
      const second = await agent.turn({ within_ms: 300 }).catch(() => undefined);
      must('TRN8', second === undefined, 'an accepted turn was given to the agent again');
      return 'not accepted: again, attempt 2; accepted and forgotten: interrupted, never again';
    },
  },
  {
    rules: ['TRN9'],
    needs: ['admin'],
    seconds: 6,
    async run(ctx) {
      const space = await ctx.own();
      const device = await space.join('phone');
      await device.send('anybody?');
      await device.send('hello?');
      const notice = await device.next((frame) => frame.type === 'message' && frame.payload.role === 'system', { within_ms: 6_000 });
      await ctx.quiet(3_000);
      const all = device.frames((frame) => frame.type === 'message' && frame.payload.role === 'system');
      must('TRN9', all.length === 1, `${all.length} notices came`);
      return `one notice: ${JSON.stringify(notice.payload.text)}`;
    },
  },
  {
    rules: ['STO1', 'STO2', 'LNK21'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
      const { turn } = await actor.turn(device, ctx.text('to be stopped'), ctx.lane);
      turn.start();
      turn.delta('until here');
      await other.next('message.update');
      like('STO2', await other.request('agent.stop', {}, ctx.lane), { type: 'ack', payload: { ok: true } });
      await ctx.target.patience.wait(() => (turn.stopped ? true : undefined), { describe: () => 'agent.stop did not reach the agent' });
      turn.stop();
      turn.end('cancelled');
      await device.next('agent.idle');
      device.received.skip();
      like('STO2', await device.request('agent.stop', {}, ctx.lane), { type: 'ack', payload: { ok: true } });
      await device.send(ctx.text('behind'), ctx.lane);
      must(
        'STO2',
        device.received
          .rest()
          .every(
            ({ frame }) => frame.type === 'ack' || frame.type === 'message' || frame.type === 'read.receipt' || frame.type === 'agent.busy',
          ),
        `with nothing running came ${shown(device.received.rest().map(({ frame }) => frame))}`,
      );
      return 'from another device, through another edge; with nothing running ack and no more';
    },
  },
  {
    rules: ['STO3'],
    needs: ['admin', 'agent'],
    seconds: 12,
    async run(ctx) {
      const space = await ctx.own();
      const actor = await space.actor();
      const device = await space.join('phone');
      const { turn } = await actor.turn(device, ctx.text('deaf to stop'));
      turn.start();
      turn.delta('on and on');
      await device.next('message.update');
      await device.request('agent.stop', {}, space.lane);
      const begun = ctx.target.patience.now();
      await device.next('agent.idle', { within_ms: 11_000 + ctx.target.slack_ms });
      return `the agent did nothing; idle after ${ctx.target.patience.now() - begun} ms`;
    },
  },
  {
    rules: ['STE1', 'STE2', 'STE3', 'LNK22'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const [device, other] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1 })];
      const { turn } = await actor.turn(device, ctx.text('to be steered'), ctx.lane);
      // Before that the gateway may not have heard that it is accepted, and nothing would run.
      await device.next('agent.busy');
      const text = ctx.text('the other way');
      const answer = await device.request('agent.steer', { text }, ctx.lane);
      if (answer.payload.code === 'unsupported') throw need('agent.steer');
      like('STE3', answer, { type: 'ack', payload: { ok: true, message_id: (id: unknown) => typeof id === 'string' } });
      like('STE1', await other.next((frame) => frame.payload.text === text), {
        type: 'message',
        payload: { role: 'user', steer: true, message_id: answer.payload.message_id },
      });
      await ctx.target.patience.wait(() => (turn.steers.includes(text) ? true : undefined), {
        describe: () => 'the steer did not reach the agent',
      });
      const page = await device.history({ ...ctx.lane, limit: 10 });
      like(
        'STE1',
        { type: 'row', payload: page.payload.messages!.find((one) => one.message_id === answer.payload.message_id) ?? {} },
        { payload: { text, steer: true } },
      );
      turn.end();
      await device.next('agent.idle');
      const alone = ctx.text('nothing runs');
      const claimed = actor.claim(alone);
      claimed.catch(() => {});
      like('STE3', await device.request('agent.steer', { text: alone }, ctx.lane), { type: 'ack' });
      const next = await claimed;
      next.accept();
      next.end();
      return 'to the running turn, stored with steer:true; with none running it is the next turn';
    },
  },
  {
    rules: ['TOO1', 'TOO2', 'TOO3', 'OUT4'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const { turn } = await actor.turn(device, ctx.text('tools'), ctx.lane);
      turn.toolStart(3, 'terminal', { preview: 'ls', args: { command: 'ls', deep: [{ x: null }] } });
      like('TOO2', await device.next('tool.start'), {
        payload: { index: 3, name: 'terminal', preview: 'ls', args: { command: 'ls', deep: [{ x: null }] } },
      });
      turn.toolProgress(3, 'running');
      like('TOO1', await device.next('tool.progress'), { payload: { index: 3, name: 'terminal', note: 'running' } });
      turn.toolEnd(3, { ok: true, duration: 12.4, output_preview: 'a b' });
      like('TOO2', await device.next('tool.end'), {
        payload: { index: 3, name: 'terminal', ok: true, duration: 12.4, output_preview: 'a b' },
      });
      turn.toolStart(4, 'browser');
      await device.next('tool.start');
      turn.end('interrupted');
      like('TOO3', await device.next('tool.end'), { payload: { index: 4, ok: false } });
      await device.next('agent.idle');
      return 'start, progress, end with one index; one that ran when its turn was interrupted ends with ok:false';
    },
  },
  {
    rules: ['TYP1', 'LNK10'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const from = (await device.sync()).payload.cursor!;
      device.received.skip();
      const { turn } = await actor.turn(device, ctx.text('typing'), ctx.lane);
      turn.typing();
      like('TYP1', await device.next('typing'), { payload: { on: true }, cursor: undefined });
      turn.typing(false);
      await device.next((frame) => frame.type === 'typing.stop' || (frame.type === 'typing' && frame.payload.on === false));
      turn.end();
      await device.next('agent.idle');
      device.received.skip();
      await device.sync(from);
      must('TYP1', !device.received.rest().some(({ frame }) => frame.type.startsWith('typing')), 'typing was replayed');
      return 'live, and not replayed';
    },
  },
  {
    rules: ['TYP2'],
    needs: ['admin', 'agent'],
    seconds: 12,
    async run(ctx) {
      const space = await ctx.own();
      const actor = await space.actor();
      const device = await space.join('phone');
      const { turn } = await actor.turn(device, ctx.text('forgotten typing'));
      turn.typing();
      await device.next('typing');
      const begun = ctx.target.patience.now();
      await device.next((frame) => frame.type === 'typing.stop' || (frame.type === 'typing' && frame.payload.on === false), {
        within_ms: 11_500 + ctx.target.slack_ms,
      });
      turn.end();
      return `ended by itself after ${ctx.target.patience.now() - begun} ms`;
    },
  },
  {
    rules: ['NOT1', 'NOT2', 'LNK28'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const device = await ctx.join('phone');
      const kinds = ['channel_renamed', 'channel_created', 'cron', 'approval', 'clarify', 'generic'];
      for (const kind of kinds) {
        const body = ctx.text(kind);
        actor.agent.say('notification', { kind, title: 'Title', body, ts: 1724000000000 }, ctx.lane);
        like('NOT1', await device.next((frame) => frame.payload.body === body), {
          type: 'notification',
          payload: { kind, title: 'Title', body, ts: Number.isSafeInteger },
        });
      }
      const text = ctx.text('from cron');
      actor.agent.say('message', { message_id: text, role: 'cron', text }, ctx.lane);
      like('LNK28', await device.next((frame) => frame.payload.text === text), { type: 'message', payload: { role: 'cron' } });
      return `${kinds.length} kinds outside any turn, and a cron message`;
    },
  },
];
