import { tenantOfToken } from '@iris/protocol';
import { type Check, has, like, must, need, refused, shown, watermarkOf } from '../check.js';

const online = { type: 'status', payload: { state: 'online' } };
const whole = (x: unknown) => Number.isSafeInteger(x) && (x as number) >= 0;

/** Connecting, and what follows `hello.ack`. */
export const hel: readonly Check[] = [
  {
    rules: ['HEL1', 'HEL4', 'HEL21'],
    async run(ctx) {
      const device = ctx.newcomer({ device_name: 'Conformance' });
      await device.connect();
      const hello = { token: ctx.device_token, device_id: device.device_id, device_name: 'Conformance', caps: { min_protocol: 1 } };
      device.raw(JSON.stringify({ type: 'hello', id: 'h1', payload: hello }));
      like('HEL4', await device.next(['hello.ack', 'error']), { type: 'hello.ack', id: 'h1' });
      like('HEL21', await device.next(() => true), online);
      return `${ctx.target.doors[0]?.name}: hello.ack, then status online`;
    },
  },
  {
    rules: ['HEL2', 'CLS4'],
    seconds: 10,
    async run(ctx) {
      const device = ctx.device('silent');
      await device.connect();
      const begun = ctx.target.patience.now();
      const { code } = await device.closed({ within_ms: 10_000 + 2_000 + ctx.target.slack_ms });
      must('CLS4', code === 4408, `closed with ${code}`);
      return `closed with 4408 after ${ctx.target.patience.now() - begun} ms`;
    },
  },
  {
    rules: ['HEL3', 'CLS2'],
    async run(ctx) {
      const firsts: [string | Uint8Array, string | number | undefined][] = [
        ['{"type":"ping","id":7}', 7],
        ['{"type":"message.send","id":"s","payload":{"text":"before hello"}}', 's'],
        ['{"type":"sync","payload":{}}', undefined],
        ['hello?', undefined],
        ['[1]', undefined],
        [new Uint8Array([1, 2, 3]), undefined],
      ];
      for (const [first, id] of firsts) {
        const device = ctx.device('early');
        await device.connect();
        device.raw(first);
        const error = refused('HEL3', await device.next(() => true), 'auth');
        must('HEL3', error.id === id, `the first frame was ${String(first)}, and its error has the id ${error.id}`);
        const { code } = await device.closed();
        must('CLS2', code === 4401, `closed with ${code} after ${String(first)}`);
      }
      return `${firsts.length} first frames, one of them binary: error auth, 4401`;
    },
  },
  {
    rules: ['HEL5'],
    async run(ctx) {
      const tenant = tenantOfToken(ctx.device_token);
      const last = ctx.device_token.at(-1);
      const wrong = [
        `${ctx.device_token.slice(0, -1)}${last === 'x' ? 'y' : 'x'}`,
        ...(tenant === undefined ? [] : [ctx.device_token.replace(tenant, 'NoSuchTenant0')]),
        'no token at all',
      ];
      const answers: string[] = [];
      for (const token of wrong) {
        const device = ctx.device('stranger', { token });
        await device.connect();
        const error = await device.hello();
        if (has(error, { type: 'error', payload: { code: 'rate_limited' } }))
          throw need('a minute without failed hellos from this address');
        refused('HEL5', error, 'auth');
        answers.push(JSON.stringify(error));
        const { code } = await device.closed();
        must('HEL5', code === 4401, `closed with ${code}`);
      }
      must('HEL5', new Set(answers).size === 1, `they do not look the same: ${answers.join(' · ')}`);
      return `a wrong secret, an unknown tenant and nonsense all get ${answers[0]}`;
    },
  },
  {
    rules: ['HEL7'],
    needs: ['admin'],
    async run(ctx) {
      const other = await ctx.own();
      const mine = await ctx.join('phone');
      const theirs = other.device('phone');
      await theirs.connect();
      const payload = { tenant_id: tenantOfToken(ctx.device_token), tenant: tenantOfToken(ctx.device_token) };
      like('HEL7', await theirs.hello(payload), { type: 'hello.ack' });
      const text = ctx.text();
      await theirs.send(text, payload);
      const seen = await mine.send(ctx.text('own'), ctx.lane);
      must('HEL7', !mine.frames('message').some((frame) => frame.payload.text === text), 'a frame named another tenant, and went there');
      return `a tenant_id in frames is not looked at; only ${seen.payload.message_id} was seen`;
    },
  },
  {
    rules: ['HEL8'],
    async run(ctx) {
      for (const device_id of [undefined, '', 7, null, 'd'.repeat(129)]) {
        const device = ctx.device('nameless');
        await device.connect();
        refused('HEL8', await device.hello({ device_id }), 'auth');
        const { code } = await device.closed();
        must('HEL8', code === 4401, `closed with ${code} for device_id ${JSON.stringify(device_id)}`);
      }
      const device = ctx.device('longest');
      await device.connect();
      like('HEL8', await device.hello({ device_id: 'conformance-'.padEnd(128, 'é') }), { type: 'hello.ack' });
      return 'none, empty, a number, null and 129 characters: error auth, 4401; 128 are taken';
    },
  },
  {
    rules: ['HEL9', 'CLS1'],
    async run(ctx) {
      const device = ctx.device('future');
      await device.connect();
      refused('HEL9', await device.hello({ caps: { min_protocol: 2 } }), 'unsupported');
      const { code } = await device.closed();
      must('CLS1', code === 4400, `closed with ${code}`);
      return 'min_protocol 2: error unsupported, 4400';
    },
  },
  {
    rules: ['HEL10', 'CAP1'],
    async run(ctx) {
      for (const caps of ['yes', null, [], 7, { min_protocol: '2', cursors: 'true', delta: 1, later: {} }]) {
        const device = ctx.device('odd');
        await device.connect();
        like('HEL10', await device.hello({ caps }), { type: 'hello.ack' });
        const echo = await device.send(ctx.text(), ctx.lane);
        must('CAP1', echo.cursor === undefined, `${JSON.stringify(caps)} was taken for the cursors cap`);
        device.close();
      }
      return 'five odd caps, each as if there were none';
    },
  },
  {
    rules: ['HEL11'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const again = await device.request('hello', { token: ctx.device_token, device_id: 'conformance-other' });
      refused('HEL11', again, 'unsupported');
      like('HEL11', await device.request('ping', { ts: 1 }), { type: 'pong' });
      const wrong = await device.request('hello', { token: 'wrong', device_id: 'x' });
      refused('HEL11', wrong, 'unsupported');
      return 'a second hello, good or bad: error unsupported, and ping still works';
    },
  },
  {
    rules: ['HEL12', 'CLS5'],
    async run(ctx) {
      const ways: string[] = [];
      for (let door = 0; door < Math.min(2, ctx.target.doors.length); door++) {
        const older = await ctx.join('twin', { door: 0 });
        const newer = await ctx.join('twin', { door });
        const { code } = await older.closed();
        must('CLS5', code === 4409, `the older was closed with ${code}`);
        like('HEL12', await newer.request('ping', {}), { type: 'pong' });
        ways.push(door === 0 ? 'the same edge' : 'another edge');
        newer.close();
      }
      return `on ${ways.join(' and ')} the older gets 4409, the newer goes on`;
    },
  },
  {
    rules: ['HEL13'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own({ devices: 2 });
      await space.join('one');
      await space.join('two');
      const third = space.device('three');
      await third.connect();
      refused('HEL13', await third.hello(), 'rate_limited');
      await space.join('two');
      return 'two devices of a quota of two; the third is rate_limited, the second may come back';
    },
  },
  {
    rules: ['HEL14'],
    needs: ['admin'],
    async run(ctx) {
      const space = await ctx.own();
      const { token } = await ctx.admin.token(space.tenant_id, 'device', 'conformance-paired');
      await space.join('paired', { token });
      const other = space.device('other', { token });
      await other.connect();
      const error = await other.hello();
      if (has(error, { payload: { code: 'rate_limited' } })) throw need('a minute without failed hellos from this address');
      refused('HEL14', error, 'auth');
      return 'opens its own device; for another it is error auth';
    },
  },
  {
    rules: ['HEL15', 'CLS3'],
    needs: ['admin'],
    async run(ctx) {
      const { revokeToken, revokeDevice } = ctx.admin;
      if (revokeToken === undefined || revokeDevice === undefined) throw need('the admin API');
      const space = await ctx.own();
      const { token_id, token } = await ctx.admin.token(space.tenant_id, 'device');
      const devices = await Promise.all(ctx.target.doors.map((_, door) => space.join(`held-${door}`, { door, token })));
      const stays = await space.join('stays');
      const single = await space.join('single', { door: ctx.target.doors.length - 1 });
      await revokeToken(space.tenant_id, token_id);
      await revokeDevice(space.tenant_id, single.device_id);
      const done = ctx.target.patience.now();
      for (const device of [...devices, single]) {
        const { code } = await device.closed({ within_ms: 1_000 + ctx.target.slack_ms });
        must('CLS3', code === 4403, `closed with ${code}`);
      }
      const took = ctx.target.patience.now() - done;
      like('HEL15', await stays.request('ping', {}), { type: 'pong' });
      return `${devices.length + 1} sockets on ${ctx.target.doors.length} edges closed with 4403 within ${took} ms; another token's stays`;
    },
  },
  {
    rules: ['HEL16', 'HEL17', 'HEL18', 'HEL20'],
    async run(ctx) {
      const device = ctx.newcomer();
      const ack = like('HEL16', await device.join(), {
        type: 'hello.ack',
        payload: {
          server_caps: (caps: unknown) => typeof caps === 'object' && caps !== null,
          sync_cursor: whole,
          last_pushed_cursor: whole,
          channels: Array.isArray,
        },
      });
      const { server_caps, channels, last_pushed_cursor } = ack.payload as {
        server_caps: Record<string, unknown>;
        channels: { chat_id: string }[];
        last_pushed_cursor: number;
      };
      like('HEL17', { type: 'server_caps', payload: server_caps }, { payload: { streaming: true, push: 'none' } });
      must('HEL20', last_pushed_cursor === 0, `a new device has last_pushed_cursor ${last_pushed_cursor}`);
      for (const chat_id of ['android:default', ctx.lane.chat_id])
        must(
          'HEL18',
          channels.some((one) => one.chat_id === chat_id),
          `channels lacks ${chat_id}`,
        );
      const search = await device.request('search', { query: 'nothing of the kind', scope: 'all' });
      must(
        'HEL17',
        server_caps.search !== true || search.type === 'search.results',
        `server_caps.search is true, and search says ${shown([search])}`,
      );
      return `${channels.length} channels; push ${String(server_caps.push)}, search ${String(server_caps.search)}, media ${String(server_caps.media)}`;
    },
  },
  {
    rules: ['HEL19'],
    async run(ctx) {
      const known = await ctx.join('known', { caps: { cursors: true } });
      await known.sync();
      const echo = await known.send(ctx.text(), ctx.lane);
      must('HEL19', echo.cursor !== undefined, 'a device with the cursors cap got no cursor');
      const fresh = ctx.newcomer();
      const head = (await fresh.join()).payload.sync_cursor!;
      must('HEL19', head >= echo.cursor, `a new device is told ${head}, and the head is at least ${echo.cursor}`);
      const done = await fresh.sync();
      must('HEL19', fresh.frames((frame) => frame.cursor !== undefined).length === 0, 'a new device was replayed something');
      must('HEL19', done.payload.cursor! >= head, `sync.done says ${done.payload.cursor}, below ${head}`);
      const { cursor } = echo;
      like('HEL19', await known.request('ack', { cursor }), { type: 'ack' });
      const back = await watermarkOf(ctx, known, cursor);
      must('HEL19', back >= cursor, `the device acknowledged ${cursor}, and its watermark is ${back}`);
      return `new: the head ${head}; known: ${back} after ack ${cursor}`;
    },
  },
  {
    rules: ['HEL22', 'HEL24'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const phone = await ctx.join('phone');
      const { turn } = await actor.turn(phone, ctx.text('joining'), ctx.lane);
      turn.start();
      turn.delta('half of ');
      const { message_id } = (await phone.next('message.update')).payload;
      const late = ctx.newcomer({ door: 1 });
      await late.join();
      await late.request('ping', {});
      const told = late.frames(({ chat_id }) => chat_id === ctx.lane.chat_id);
      must(
        'HEL22',
        told.some(({ type }) => type === 'agent.busy'),
        `no agent.busy of the lane: ${shown(told)}`,
      );
      const of = told.filter(({ payload }) => payload.message_id === message_id);
      must(
        'HEL22',
        of[0]?.type === 'message.start' && of[1]?.type === 'message.update' && of.length === 2,
        `told of the message: ${shown(of)}`,
      );
      like('HEL22', of[1], { payload: { text: 'half of ' } });
      late.received.skip();
      turn.delta('an answer');
      turn.stop();
      turn.end();
      like('HEL24', await late.next('message.stop'), { payload: { message_id, final_text: 'half of an answer' } });
      await late.next('agent.idle');
      return 'busy, start, one update with the text so far; then the stop, live';
    },
  },
  {
    rules: ['HEL23'],
    needs: ['agent'],
    async run(ctx) {
      const actor = await ctx.actor();
      const phone = await ctx.join('phone');
      const { turn } = await actor.turn(phone, ctx.text('asking'), ctx.lane);
      turn.picker('choice', { title: 'Which?', choices: [{ value: 'a', label: 'A' }] });
      const picker = await phone.next('picker.choice');
      const late = ctx.newcomer({ door: 1 });
      await late.join();
      await late.request('ping', {});
      like(
        'HEL23',
        late.frames('picker.choice').find((frame) => frame.payload.picker_id === picker.payload.picker_id),
        { type: 'picker.choice' },
      );
      turn.end();
      return `${picker.payload.picker_id} was told after hello.ack`;
    },
  },
  {
    rules: ['HEL25'],
    async run(ctx) {
      const phone = await ctx.join('phone', { caps: { cursors: true } });
      const late = ctx.newcomer({ door: 1, caps: { cursors: true } });
      const texts = Array.from({ length: 8 }, (_, i) => ctx.text(`streaming ${i}`));
      const first = phone.send(texts[0]!, ctx.lane);
      const joining = late.join();
      const echoes = await Promise.all([first, ...texts.slice(1).map((text) => phone.send(text, ctx.lane))]);
      const from = (await joining).payload.sync_cursor!;
      const last = echoes.at(-1)!.cursor!;
      if (from < last) await late.next(({ cursor }) => cursor !== undefined && cursor >= last);
      const wanted = echoes.map(({ cursor }) => cursor!).filter((cursor) => cursor > from);
      const got = late.frames('message').flatMap(({ cursor, payload }) => (texts.includes(payload.text ?? '') ? [cursor!] : []));
      must('HEL25', wanted.join() === got.join(), `the head at hello was ${from}; wanted ${wanted.join()}, came ${got.join()}`);
      return `head ${from} at hello, then ${got.length} of 8 messages, each once`;
    },
  },
  {
    rules: ['HEL29'],
    needs: ['socket'],
    async run(ctx) {
      const door = ctx.target.doors[0]!;
      const silent = { message() {}, ping() {}, closed() {} };
      const evil = ['http://evil.example', 'null', `http://${door.host}.evil.example`, `http://evil.example/${door.host}`];
      for (const origin of evil) {
        const refusal = await door.from!(origin)(silent).then(
          (wire) => {
            wire.close();
            return 'let in';
          },
          (error: Error) => error.message,
        );
        must('HEL29', refusal.includes('403'), `Origin ${origin}: ${refusal}`);
      }
      return `${evil.length} foreign origins refused with 403; none is needed`;
    },
  },
  {
    rules: ['HEL30', 'SYN3', 'SYN1', 'OUT2'],
    async run(ctx) {
      const away = await ctx.join('away');
      await away.sync();
      away.cut();
      const phone = await ctx.join('phone');
      const missed = [await phone.send(ctx.text('missed'), ctx.lane), await phone.send(ctx.text('missed too'), ctx.lane)];
      await away.join();
      away.received.skip();
      const fresh = await phone.send(ctx.text('new'), ctx.lane);
      await away.next((frame) => frame.payload.message_id === fresh.payload.message_id);
      const ids = missed.map(({ payload }) => payload.message_id);
      const early = away.received.all.filter(({ connection, frame }) => connection === 2 && ids.includes(frame.payload.message_id));
      must('HEL30', early.length === 0, `before sync it got ${shown(early.map(({ frame }) => frame))}`);
      away.received.skip();
      const done = await away.sync();
      const replayed = away.received.rest().map(({ frame }) => frame);
      const got = replayed.filter(({ type, payload }) => type === 'message' && ids.includes(payload.message_id));
      must('SYN3', got.map(({ payload }) => payload.message_id).join() === ids.join(), `sync replayed ${shown(replayed)}`);
      must(
        'SYN1',
        got.every(({ cursor }) => cursor !== undefined),
        'a replayed frame has no cursor',
      );
      must('SYN1', done.payload.cursor! >= got.at(-1)!.cursor!, `sync.done says ${done.payload.cursor}, after ${got.at(-1)!.cursor}`);
      return `only what came after hello; then sync gave the ${ids.length} missed`;
    },
  },
];
