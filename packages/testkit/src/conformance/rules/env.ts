import { type Check, comesOf, like, must, refused, shown } from '../check.js';

const only = (rule: string, frames: readonly { readonly type: string }[], count: number, what: string) =>
  must(rule, frames.length === count, `${what}: ${shown(frames as never)}`);

/** The envelope. */
export const env: readonly Check[] = [
  {
    rules: ['ENV1', 'ENV2'],
    async run(ctx) {
      const device = await ctx.join('phone');
      like('ENV1', (await comesOf(device, ctx.lane, '{"type":"ping","id":1}'))[0], { type: 'pong', id: 1 });
      for (const v of ['2', '0', '"1"', '1.5', '-1']) {
        const frames = await comesOf(device, ctx.lane, `{"v":${v},"type":"ping","id":1}`);
        only('ENV2', frames, 1, `v ${v}`);
        like('ENV2', refused('ENV2', frames[0], 'unsupported'), { id: 1 });
      }
      const stranger = ctx.device('future');
      await stranger.connect();
      stranger.raw(JSON.stringify({ v: 2, type: 'hello', payload: { token: ctx.device_token, device_id: stranger.device_id } }));
      refused('ENV2', await stranger.next(() => true), 'unsupported');
      const { code } = await stranger.closed();
      must('ENV2', code === 4400, `closed with ${code}`);
      return 'v absent is 1; others are error unsupported, and before hello 4400';
    },
  },
  {
    rules: ['ENV3', 'ENV17'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const ids = [0, -5, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 'x', '__proto__', 'ü😀\\"', 'y'.repeat(64)];
      for (const id of ids) {
        like('ENV3', (await comesOf(device, ctx.lane, JSON.stringify({ id, type: 'ping' })))[0], { type: 'pong', id });
        const answer = await device.request('history', { limit: 1 }, { ...ctx.lane, id: typeof id === 'string' ? id : id - 0 });
        like('ENV3', answer, { type: 'history', id });
      }
      return `${ids.length} ids, up to ±(2^53-1) and 64 characters, echoed exactly`;
    },
  },
  {
    rules: ['ENV4'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const text = ctx.text('never');
      const ids = ['""', `"${'x'.repeat(65)}"`, '1.5', '9007199254740992', 'true', '{}', '[1]'];
      for (const id of ids) {
        const raw = `{"id":${id},"type":"message.send","chat_id":${JSON.stringify(ctx.lane.chat_id)},"payload":{"text":${JSON.stringify(text)}}}`;
        const frames = await comesOf(device, ctx.lane, raw);
        only('ENV4', frames, 1, `id ${id}`);
        like('ENV4', refused('ENV4', frames[0], 'unsupported'), { id: undefined });
      }
      return `${ids.length} ids that cannot be echoed: error unsupported without id, nothing is sent`;
    },
  },
  {
    rules: ['ENV5', 'ENV20'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const other = await ctx.join('tablet', { door: 1 });
      like('ENV5', (await comesOf(device, ctx.lane, '{"id":null,"type":"ping","payload":{"ts":4}}'))[0], {
        type: 'pong',
        id: undefined,
        payload: { ts: 4 },
      });
      const text = ctx.text('without id');
      device.say('message.send', { text }, ctx.lane);
      for (const one of [device, other])
        like('ENV20', await one.next((frame) => frame.payload.text === text), { type: 'message', id: undefined });
      const frames = await comesOf(device, ctx.lane, '{"type":"message.send","payload":{"text":" "}}');
      only('ENV20', frames, 1, 'a bad send without id');
      like('ENV20', refused('ENV20', frames[0], 'unsupported'), { id: undefined });
      return 'a send without id is sent; its frames and errors carry none';
    },
  },
  {
    rules: ['ENV6', 'ENV7'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const nonsense = ['hello there', '{"type":"ping"', '[]', 'null', '7', '"ping"', '{}', '{"type":7}', ''];
      for (const raw of nonsense) {
        const frames = await comesOf(device, ctx.lane, raw);
        only('ENV6', frames, 1, `${JSON.stringify(raw)}`);
        refused('ENV6', frames[0], 'unsupported');
      }
      must('ENV6', device.connected, 'the connection was closed after nine');
      device.raw('{}');
      const { code } = await device.closed();
      must('ENV7', code === 4400, `closed with ${code} after ten`);
      return `${nonsense.length} of them: error unsupported each; the tenth closes with 4400`;
    },
  },
  {
    rules: ['ENV8', 'CLS7'],
    async run(ctx) {
      const codes: number[] = [];
      const bad = [new Uint8Array([0x7b, 0xff, 0x7d]), new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])];
      for (const bytes of bad) {
        const device = await ctx.join('phone');
        device.raw(bytes, 'text');
        codes.push((await device.closed()).code);
      }
      // The WebSocket server may end a connection that breaks RFC 6455 without a closing handshake.
      must(
        'ENV8',
        codes.every((code) => code === 1007 || code === 1006),
        `closed with ${codes.join()}`,
      );
      return `closed with ${codes.join()} (1006: at once, without a closing handshake)`;
    },
  },
  {
    rules: ['ENV9', 'ENV10', 'SYN4', 'UPL6', 'STE4', 'HIS2', 'SEA2', 'PIC15'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const { chat_id } = ctx.lane;
      const text = ctx.text('never');
      const bad: [string, string, string, unknown][] = [
        ['ENV10', 'payload', 'message.send', []],
        ['ENV10', 'payload', 'message.send', 'text'],
        ['ENV9', 'text', 'message.send', { text: 7 }],
        ['ENV9', 'text', 'message.send', {}],
        ['ENV9', 'media_refs', 'message.send', { text, media_refs: 'mu_1' }],
        ['ENV9', 'client_ref', 'message.send', { text, client_ref: '' }],
        ['ENV9', 'auto_thread', 'message.send', { text, auto_thread: 'yes' }],
        ['SYN4', 'cursor', 'sync', { cursor: -1 }],
        ['SYN4', 'cursor', 'sync', { cursor: 1.5 }],
        ['SYN4', 'cursor', 'sync', { cursor: '1' }],
        ['HIS2', 'limit', 'history', { limit: '50' }],
        ['ENV9', 'message_ids', 'message.delete', { message_ids: [] }],
        ['SEA2', 'scope', 'search', { query: 'x', scope: 'everywhere' }],
        ['UPL6', 'size', 'media.upload.start', { media_ref: 'mu_1', kind: 'image', mime: 'image/png', size: 0 }],
        ['UPL6', 'size', 'media.upload.start', { media_ref: 'mu_1', kind: 'image', mime: 'image/png', size: -4 }],
        ['UPL6', 'size', 'media.upload.start', { media_ref: 'mu_1', kind: 'image', mime: 'image/png', size: 1.5 }],
        ['STE4', 'text', 'agent.steer', { text: ' \n' }],
        ['STE4', 'text', 'agent.steer', { text: 'x'.repeat(64 * 1024 + 1) }],
        ['PIC15', 'value', 'picker.select', { picker_id: 'p_1', value: 'é'.repeat(2049) }],
      ];
      for (const [rule, field, type, payload] of bad) {
        const frames = await comesOf(device, ctx.lane, JSON.stringify({ type, id: 1, chat_id, payload }));
        only(rule, frames, 1, `${type} with a bad ${field}`);
        like(rule, refused(rule, frames[0], 'unsupported', field), { id: 1 });
      }
      const page = await device.history({ ...ctx.lane, limit: 5 });
      must('ENV9', !page.payload.messages?.some((one) => one.text === text), 'a refused send is in history');
      like('ENV10', (await comesOf(device, ctx.lane, '{"type":"ping","id":2,"payload":null}'))[0], { id: 2, type: 'error' });
      like('ENV10', (await comesOf(device, ctx.lane, '{"type":"ping","id":2}'))[0], { id: 2, type: 'pong' });
      return `${bad.length} bad payloads: error unsupported, its message begins with the field`;
    },
  },
  {
    rules: ['ENV11', 'ENV12'],
    async run(ctx) {
      const device = await ctx.join('phone');
      for (const type of ['teleport', 'constructor', '__proto__', 'toString', 'hello.ack', 'message']) {
        only('ENV11', await comesOf(device, ctx.lane, JSON.stringify({ type, payload: {} })), 0, `${type} without id`);
        const frames = await comesOf(device, ctx.lane, JSON.stringify({ type, id: 3, payload: {} }));
        only('ENV11', frames, 1, `${type} with id`);
        like('ENV11', refused('ENV11', frames[0], 'unsupported'), { id: 3 });
      }
      const frames = await comesOf(device, ctx.lane, '{"type":"ping","id":1,"extra":[1],"payload":{"ts":3,"more":{}}}');
      like('ENV12', frames[0], { type: 'pong', payload: { ts: 3, more: undefined } });
      like('ENV12', await device.send(ctx.text(), { ...ctx.lane, someday: { deep: true } }), { type: 'message' });
      return 'unknown types: silence without id, error unsupported with one; unknown fields are ignored';
    },
  },
  {
    rules: ['ENV13', 'ENV14'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const { chat_id } = ctx.lane;
      like('ENV13', await device.request('history', { chat_id: 'android:chan_0' }, { chat_id }), { type: 'history', chat_id });
      like('ENV13', await device.request('history', { chat_id }), { type: 'history', chat_id });
      refused('ENV13', await device.request('history', { chat_id }, { chat_id: 'android:chan_0' }), 'not_found');
      refused('ENV13', await device.request('history', { thread_id: 't_0', chat_id }), 'not_found');
      like('ENV14', await device.send(ctx.text('to the default channel')), {
        type: 'message',
        chat_id: (id: unknown) => typeof id === 'string',
      });
      for (const type of [
        'history',
        'agent.stop',
        'message.delete',
        'read.receipt',
        'channel.rename',
        'channel.delete',
        'channel.set_default',
      ]) {
        const payload = { message_ids: ['m_1'], message_id: 'm_1', name: 'x' };
        refused('ENV14', await device.request(type, payload), 'unsupported', 'chat_id');
      }
      return 'the envelope wins; without chat_id a send goes to the default channel, the rest is error unsupported';
    },
  },
  {
    rules: ['ENV15'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const text = ctx.text();
      const send = `{"type":"message.send","id":"constructor","chat_id":${JSON.stringify(ctx.lane.chat_id)},"__proto__":{"id":1},"payload":{"text":${JSON.stringify(text)},"__proto__":{"text":"no"}}}`;
      const [echo] = await comesOf(device, ctx.lane, send);
      like('ENV15', echo, { type: 'message', id: 'constructor', payload: { text, client_ref: undefined } });
      for (const chat_id of ['__proto__', 'toString', 'constructor', 'hasOwnProperty'])
        refused('ENV15', await device.request('history', {}, { chat_id }), 'not_found');
      const stranger = ctx.device('plain');
      await stranger.connect();
      stranger.raw(
        `{"type":"hello","payload":{"token":${JSON.stringify(ctx.device_token)},"device_id":"__proto__","caps":{"__proto__":{"cursors":true}}}}`,
      );
      like('ENV15', await stranger.next(['hello.ack', 'error']), { type: 'hello.ack' });
      like('ENV15', await stranger.send(ctx.text(), ctx.lane), { type: 'message', cursor: undefined });
      return 'as ids, channels, devices and keys they are data like any other';
    },
  },
  {
    rules: ['ENV16'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const other = await ctx.join('tablet', { door: 1 });
      const text = `${ctx.text()} \u202e שלום 👨‍👩‍👧‍👦 é \u200b\t\r\n\ufeff "\\ </script> 漢字`;
      like('ENV16', await device.send(text, ctx.lane), { payload: { text } });
      like('ENV16', await other.next((frame) => frame.type === 'message' && frame.payload.text === text), {});
      const mark = ctx.text('cut');
      const raw = `{"type":"message.send","id":"n","chat_id":${JSON.stringify(ctx.lane.chat_id)},"payload":{"text":"${mark} a\\u0000b\\ud800c\\udc00d"}}`;
      const [echo] = await comesOf(device, ctx.lane, raw);
      const cleaned = `${mark} a\ufffdb\ufffdc\ufffdd`;
      like('ENV16', echo, { type: 'message', payload: { text: cleaned } });
      const page = await device.history({ ...ctx.lane, limit: 20 });
      for (const wanted of [text, cleaned])
        must('ENV16', page.payload.messages?.some((one) => one.text === wanted) === true, `history lacks ${JSON.stringify(wanted)}`);
      return 'marks, joiners, both directions, quotes and line ends as they were; U+0000 and lone surrogates are U+FFFD';
    },
  },
  {
    rules: ['ENV22', 'HIS7', 'OUT11'],
    async run(ctx) {
      const [phone, tablet] = [await ctx.join('phone'), await ctx.join('tablet', { door: 1, caps: { cursors: true } })];
      for (let i = 0; i < 5; i++) {
        const echo = await phone.send(ctx.text('just sent'), ctx.lane);
        const page = await tablet.history({ ...ctx.lane, limit: 5 });
        must(
          'HIS7',
          page.payload.messages?.some((one) => one.message_id === echo.payload.message_id) === true,
          'history of another device lacks an acknowledged message',
        );
        const { cursor } = await tablet.next((frame) => frame.payload.message_id === echo.payload.message_id);
        must('ENV22', cursor !== undefined, 'an acknowledged message has no cursor');
      }
      return 'five sends, each in history through another edge as soon as it is acknowledged';
    },
  },
  {
    rules: ['ENV26'],
    async run(ctx) {
      const device = await ctx.join('phone');
      const long = 'x'.repeat(200 * 1024);
      // Each with an `id` of its own: an answer may come behind that of a later one.
      const hostile = [
        `{"type":"history","id":1,"chat_id":${JSON.stringify(long.slice(0, 1000))}}`,
        `{"type":"${long}","id":2}`,
        `{"type":"search","id":3,"payload":{"query":"${'('.repeat(500)}\\\\ %_* ' \\" -- ; & | ! :* <->"}}`,
        `{"type":"message.delete","id":4,"chat_id":${JSON.stringify(ctx.lane.chat_id)},"payload":{"message_ids":[${Array.from({ length: 1000 }, (_, i) => `"m_no${i}"`).join()}]}}`,
        `{"type":"message.send","id":5,"chat_id":${JSON.stringify(ctx.lane.chat_id)},"payload":{"text":"x","reply_to":"' OR 1=1 --"}}`,
        `{"type":"sync","id":6,"payload":{"cursor":9007199254740991}}`,
        `{"type":"ping","id":7,"payload":{"ts":1e308}}`,
        `{"type":"ping","id":8,"payload":${'[1,'.repeat(3000)}1${']'.repeat(3000)}}`,
      ];
      for (const raw of hostile)
        for (const frame of await comesOf(device, ctx.lane, raw))
          must('ENV26', frame.payload.code !== 'internal', `${raw.slice(0, 60)} is answered internal`);
      like('ENV26', await device.request('ping', { ts: 1 }), { type: 'pong' });
      return `${hostile.length} hostile frames, none answered internal, and ping is answered after`;
    },
  },
  {
    rules: ['ENV27'],
    needs: ['admin'],
    async run(ctx) {
      const other = await ctx.own();
      const [mine, theirs] = [await ctx.join('phone'), await other.join('phone')];
      const echo = await theirs.send(ctx.text('theirs'));
      const foreign = echo.payload.message_id!;
      const asks = (id: string): [string, Record<string, unknown>][] => [
        ['message.send', { text: ctx.text('never'), reply_to: id }],
        ['history', { before_message_id: id }],
        ['read.receipt', { message_id: id }],
        ['picker.select', { picker_id: id, value: 'x' }],
        ['media.pull', { media_id: id }],
      ];
      const said: string[] = [];
      for (const [i, [type, payload]] of asks(foreign).entries()) {
        const of = async (body: Record<string, unknown>) => {
          const { id: _, ...rest } = await mine.request(type, body, ctx.lane);
          return JSON.stringify(rest);
        };
        const [a, b] = [await of(payload), await of(asks('m_0000000000000')[i]![1])];
        must('ENV27', a === b, `${type}: foreign ${a}, unknown ${b}`);
        must('ENV27', a.includes('"error"'), `${type} of a foreign id: ${a}`);
        said.push(type);
      }
      return `${said.join(', ')}: foreign and unknown ids get the same bytes`;
    },
  },
];
