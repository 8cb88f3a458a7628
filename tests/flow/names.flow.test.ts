import { lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const refused = { type: 'error', payload: { code: 'unsupported', message: expect.stringMatching(/^name/) } };

describe('C109 CHA10: names of channels and threads', () => {
  const kept: readonly (readonly [string, string])[] = [
    ['  Reports  ', 'Reports'],
    ['\u00a0\u3000Reports\ufeff', 'Reports'],
    ['two\nlines', 'two lines'],
    ['two\r\n\r\nlines\tand\u0085a\u2028tab\u2029', 'two lines and a tab'],
    ['bell\u0007 escape\u001b[31m', 'bell  escape [31m'],
    ['evil\u202etxt.exe', 'eviltxt.exe'],
    ['\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069x', 'x'],
    // Right-to-left text, its marks and joiners stay as they are.
    ['مرحبا بالعالم', 'مرحبا بالعالم'],
    ['שלום עולם', 'שלום עולם'],
    ['נִקּוּד', 'נִקּוּד'],
    ['می\u200cخواهم', 'می\u200cخواهم'],
    ['\u200fעברית\u200f (RTL)', '\u200fעברית\u200f (RTL)'],
    ['हिन्दी क्षेत्र', 'हिन्दी क्षेत्र'],
    ['👨‍👩‍👧‍👦', '👨‍👩‍👧‍👦'],
    ['🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}', '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}'],
    ['❤️', '❤️'],
    ['e\u0301', 'e\u0301'],
    ['日本語のチャンネル', '日本語のチャンネル'],
    ['__proto__', '__proto__'],
    ['nul\u0000here', 'nul\ufffdhere'],
    ['half \ud800 pair', 'half \ufffd pair'],
    ['x'.repeat(128), 'x'.repeat(128)],
    [` ${'😀'.repeat(128)} `, '😀'.repeat(128)],
  ];
  test('what is kept of them, the same in the answer, for others, and in hello.ack', () =>
    onStage(async ({ tenant, a, b }) => {
      const { payload } = await a.request('channel.create', { name: 'first' });
      await b.next('channel.created');
      for (const [given, name] of kept) {
        const created = await a.request('channel.create', { name: given });
        expect([given, created.payload.name]).toEqual([given, name]);
        expect((await b.next('channel.created')).payload.name).toBe(name);
        const renamed = await a.request('channel.rename', { name: given }, { chat_id: payload.chat_id! });
        expect(renamed.payload.name).toBe(name);
        const thread = await a.request('channel.create', { name: given, kind: 'thread', parent_chat_id: payload.chat_id! });
        expect(thread.payload.name).toBe(name);
        await b.next((frame) => frame.type === 'channel.created' && frame.payload.kind === 'thread');
      }
      const late = await tenant.join('late');
      const names = (late.connections[0]!.ack!.payload.channels as { name: string }[]).map(({ name }) => name);
      for (const [, name] of kept) expect(names).toContain(name);
    }));

  test('what is refused: nothing to see, or too much', () =>
    onStage(async ({ world, tenant, a }) => {
      const { payload } = await a.request('channel.create', { name: 'stays' });
      const bad = [
        '',
        '   ',
        '\n\r\t',
        '\u200b\u200b\u200b',
        '\u200c\u200d',
        '\u2060\ufeff',
        '\u00ad',
        '\u202e',
        '\u2066\u2069',
        '\u3164',
        '\u115f\u1160',
        '\uffa0',
        '\u2800',
        '\u180e',
        '\u{e0001}\u{e0041}',
        '\ufe0f',
        '\u200b \u202e \u2063',
        'x'.repeat(129),
        '😀'.repeat(129),
        'x'.repeat(36_213),
        '\u200b'.repeat(36_213),
      ];
      for (const name of bad) {
        expect([name, await a.request('channel.create', { name })]).toMatchObject([name, refused]);
        expect(await a.request('channel.rename', { name }, { chat_id: payload.chat_id! })).toMatchObject(refused);
      }
      for (const name of [7, null, ['x'], { a: 1 }, undefined])
        expect(await a.request('channel.create', name === undefined ? {} : { name: name as never })).toMatchObject(refused);
      expect((await world.store.channels.list(tenant.tenant_id)).map(({ name }) => name)).toEqual(['Default', 'stays']);
      expect(tenant.log).toHaveLength(1);
    }));

  test('an agent’s title by the same rule, made to fit', () =>
    onStage(async ({ agent, a, b }) => {
      const echo = await a.send('hello', { auto_thread: true });
      const inside = { chat_id: echo.chat_id!, thread_id: echo.thread_id! };
      const turn = await agent.turn();
      for (const [given, name] of [
        ['A \u202etitle\nof two lines', 'A title of two lines'],
        [`${'😀'.repeat(200)}`, '😀'.repeat(128)],
      ] as const) {
        expect((await agent.request('channel.rename', { name: given }, inside)).payload.name).toBe(name);
        expect((await b.next('channel.renamed')).payload.name).toBe(name);
      }
      expect(await agent.request('channel.rename', { name: '\u200b' }, inside)).toMatchObject({
        type: 'error',
        payload: { code: 'unsupported' },
      });
      turn.end();
      await a.next('agent.idle');
      expect(b.frames('channel.renamed')).toHaveLength(2);
    }));
});

test('C107 ENV16: NUL and lone surrogates, wherever text goes in: replaced, never internal, nothing half done', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const nul = 'a\u0000b\ud800c';
    const clean = 'a\ufffdb\ufffdc';
    const named = tenant.device(`dev\u0000`, { edge: 0 });
    await named.connect();
    expect((await named.hello({ device_name: nul, fcm_token: nul, ntfy_topic: nul, caps: { x: nul } })).type).toBe('hello.ack');
    expect(await world.store.devices.get(tenant.tenant_id, 'dev\ufffd' as never)).toMatchObject({ name: clean });
    const targets = await world.store.pushTargets.list(tenant.tenant_id, 'dev\ufffd' as never);
    expect(targets.map(({ address }) => address)).toEqual([clean, clean]);
    const echo = await a.send(nul, { client_ref: nul });
    expect(echo.payload).toMatchObject({ text: clean, client_ref: clean });
    expect((await a.send(nul, { client_ref: nul })).payload.message_id).toBe(echo.payload.message_id);
    expect((await a.history(lane)).payload.messages).toMatchObject([{ text: clean }]);
    const created = await a.request('channel.create', { name: nul });
    expect(created.payload.name).toBe(clean);
    expect((await a.request('search', { query: nul })).type).toBe('search.results');
    expect(await a.request('commands.complete', { prefix: nul })).toMatchObject({ type: 'commands.complete', payload: { prefix: clean } });
    expect(await a.request('fcm.register', { fcm_token: nul })).toMatchObject({ type: 'ack' });
    for (const [type, payload, scope] of [
      ['history', { before_message_id: nul }, lane],
      ['history', {}, { chat_id: nul }],
      ['message.send', { text: 'x', reply_to: nul }, lane],
      ['message.send', { text: 'x', media_refs: [nul] }, lane],
      ['picker.select', { picker_id: nul, value: nul }, {}],
      ['read.receipt', { message_id: nul }, lane],
      ['agent.stop', {}, { chat_id: 'android:default', thread_id: nul }],
      ['channel.create', { name: 'x', kind: 'thread', parent_chat_id: nul }, {}],
    ] as const)
      expect([type, await a.request(type, payload as never, scope)]).toMatchObject([
        type,
        { type: 'error', payload: { code: 'not_found' } },
      ]);
    expect(await a.request('message.delete', { message_ids: [nul] }, lane)).toMatchObject({ payload: { message_ids: [clean] } });
    // The agent's side.
    const turn = await agent.turn();
    expect(turn.text).toBe(clean);
    turn.start(nul);
    turn.delta(nul, nul);
    turn.reason(nul, nul);
    turn.toolStart(0, nul, { preview: nul, args: { [nul]: nul } });
    turn.toolEnd(0, { output_preview: nul }, nul);
    const own = turn.picker('clarify', { picker_id: nul, question: nul, title: nul });
    const picker = await b.next('picker.clarify');
    expect(picker.payload).toMatchObject({ question: clean, title: clean });
    expect(await b.request('picker.select', { picker_id: picker.payload.picker_id!, value: nul })).toMatchObject({ type: 'ack' });
    expect((await agent.next('picker.select')).payload).toMatchObject({ picker_id: own.replace(/[\0\ud800]/g, '\ufffd'), value: clean });
    turn.stop({ message_id: nul });
    turn.commentary(nul);
    turn.say('notification', { kind: 'generic', title: nul, body: nul, ts: 1 });
    turn.end('failed', { error: nul });
    for (const device of [a, b]) await device.next('agent.idle');
    expect(b.frames('message.stop')[0]!.payload).toMatchObject({ final_text: clean, reasoning: clean });
    expect(b.frames((frame) => frame.payload.role === 'system')[0]!.payload.text).toContain(clean);
    for (const device of [a, b, named])
      expect(device.frames((frame) => frame.type === 'error' && frame.payload.code === 'internal')).toEqual([]);
  }));
