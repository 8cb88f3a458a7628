import { lane, onStage, sendBytes } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

test('MSG1 MSG7 MSG11 ENV25 OUT7: the answer is the message itself, once, with the id; every other device gets it without', () =>
  onStage(async ({ world, tenant, a, b }) => {
    const desk = await tenant.join('desk', { edge: 0 });
    const echo = await a.send('hello', { ts: 4_070_908_800_000, client_ref: 'r1' });
    expect(echo).toEqual({
      v: 1,
      id: expect.any(Number),
      cursor: tenant.log[0]!.cursor,
      type: 'message',
      ...lane,
      payload: { message_id: expect.any(String), role: 'user', text: 'hello', ts: world.time.now(), client_ref: 'r1' },
    });
    const { id: _, cursor: _c, ...plain } = echo;
    for (const other of [b, desk]) expect(await other.next('message')).toEqual(plain);
    await world.advance(5_000);
    for (const device of [a, b, desk]) expect(device.frames('message')).toHaveLength(1);
  }));

test('ENV20: a send without id acts the same and is answered by nothing', () =>
  onStage(async ({ world, a, b }) => {
    a.say('message.send', { text: 'no answer wanted' });
    expect((await b.next('message')).payload.text).toBe('no answer wanted');
    await world.settle();
    expect(a.frames('message')).toMatchObject([{ payload: { text: 'no answer wanted' } }]);
    expect(a.frames('message')[0]).not.toHaveProperty('id');
    a.say('message.send', { text: ' ' });
    expect(await a.next('error')).not.toHaveProperty('id');
  }));

test('ENV22 OUT11: the answer waits for the store and the outbox', () =>
  onStage(async ({ world, tenant, a }) => {
    world.backbone.faults = { ...world.backbone.faults, store_ms: [40, 40], outbox_ms: [30, 30] };
    const start = world.time.now();
    const echo = await a.send('slow');
    expect(world.time.now() - start).toBeGreaterThanOrEqual(80);
    expect(await world.store.messages.get(tenant.tenant_id, echo.payload.message_id as never)).toMatchObject({ text: 'slow' });
    expect(tenant.log.map(({ frame }) => frame.payload.message_id)).toEqual([echo.payload.message_id]);
  }));

test.each([
  ['empty', { text: '' }],
  ['blank', { text: ' \t\n\u00a0\u2003' }],
  ['absent', {}],
  ['absent, with no media', { media_refs: [] }],
])('MSG2 C105: text that is %s is refused, and no turn starts', (_, payload) =>
  onStage(async ({ world, tenant, agent, a }) => {
    expect(await a.request('message.send', payload)).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
    await world.advance(3_000);
    expect(tenant.log).toEqual([]);
    expect(agent.received.all.filter(({ type }) => type === 'turn.start')).toEqual([]);
  }),
);

test.each([
  ['chat_id', { chat_id: 'android:chan_99' }],
  ['thread_id', { chat_id: 'android:default', thread_id: 't_99' }],
  ['reply_to', { reply_to: 'm_nowhere' }],
  ['media_refs', { media_refs: ['mu_nowhere'] }],
])('MSG3: an unknown %s is not_found, and nothing is stored', (_, more) =>
  onStage(async ({ tenant, a }) => {
    expect(await a.send('x', more)).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    expect(tenant.log).toEqual([]);
  }),
);

test('ENV27 C119: a foreign chat_id or reply_to reads as one that never was', () =>
  onStage(async ({ world, a }) => {
    const theirs = await world.tenant();
    const stranger = await theirs.join('stranger');
    const message = await stranger.send('theirs');
    await world.store.channels.create({
      tenant_id: theirs.tenant_id,
      name: 'theirs',
      auto: false,
      idempotency_key: 'k',
      max: 100,
      at: world.time.now(),
    });
    const foreign = await a.send('x', { chat_id: 'android:chan_1' });
    const unknown = await a.send('x', { chat_id: 'android:chan_2' });
    expect(foreign.payload).toEqual(unknown.payload);
    const reply = await a.send('x', { reply_to: message.payload.message_id! });
    expect(reply.payload).toEqual((await a.send('x', { reply_to: 'm_never' })).payload);
    expect(stranger.frames((frame) => frame.payload.role === 'user')).toHaveLength(1);
  }));

test('MSG1: reply_to is carried', () =>
  onStage(async ({ a, b }) => {
    const first = await a.send('first');
    const second = await b.send('second', { reply_to: first.payload.message_id! });
    expect(second.payload.reply_to).toBe(first.payload.message_id);
    expect((await b.history(lane)).payload.messages?.[1]?.reply_to).toBe(first.payload.message_id);
  }));

describe('client_ref', () => {
  test('MSG4 C15: the same one again, on another connection through another edge, gets the first result', () =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        const first = await a.send('once', { client_ref: 'ref' });
        a.cut();
        await a.join(world.edges[1]!.links.dial('/ws'));
        await a.sync(0);
        const again = await a.send('once', { client_ref: 'ref' });
        expect(again.payload).toEqual(first.payload);
        await world.advance(3_000);
        expect(tenant.log.filter(({ frame }) => frame.type === 'message')).toHaveLength(1);
        expect(b.frames('message')).toHaveLength(1);
        expect(agent.received.all.filter(({ type }) => type === 'turn.start')).toHaveLength(1);
      },
      { unchecked: true },
    ));

  test('MSG4 MSG5 C15: the answer is lost with the socket, at any moment; asked again through the other edge it is one message and one turn', () =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        const slow = { ...world.backbone.faults, socket_ms: [1, 2], bus_ms: [1, 3], store_ms: [2, 5], outbox_ms: [1, 3] } as const;
        const moments = [0, 2, 4, 6, 8, 10, 12, 15, 20, 30];
        let unanswered = 0;
        for (const [n, moment] of moments.entries()) {
          world.backbone.faults = slow;
          const text = `question ${n}`;
          let answer: { readonly type: string } | undefined;
          a.send(text, { client_ref: text }).then(
            (frame) => {
              answer = frame;
            },
            () => {},
          );
          await world.advance(moment);
          a.cut({ silent: n % 2 === 0 });
          if (answer === undefined) unanswered++;
          await a.join(world.edges[(n + 1) % 2]!.links.dial('/ws'));
          await a.sync();
          const again = await a.send(text, { client_ref: text });
          expect(again).toMatchObject({ type: 'message', payload: { text, client_ref: text } });
          expect(await a.send('another text', { client_ref: text })).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
          expect(await a.send(text, { client_ref: text })).toMatchObject({ payload: again.payload });
        }
        world.backbone.faults = { ...slow, socket_ms: [0, 0], bus_ms: [0, 0], store_ms: [0, 0], outbox_ms: [0, 0] };
        for (const [n] of moments.entries()) {
          const turn = await agent.turn();
          expect(turn.text).toBe(`question ${n}`);
          turn.end();
        }
        await world.advance(5_000);
        expect(unanswered).toBeGreaterThan(3);
        expect(agent.received.all.filter(({ type }) => type === 'turn.start')).toHaveLength(moments.length);
        const texts = moments.map((_, n) => `question ${n}`);
        expect((await b.historyAll(lane)).map(({ text }) => text)).toEqual(texts);
        expect(b.frames('message').map(({ payload }) => payload.text)).toEqual(texts);
        expect(tenant.log.filter(({ frame }) => frame.type === 'message')).toHaveLength(moments.length);
      },
      { unchecked: true },
    ));

  test('MSG4: on the same connection the frame is given again, as the answer', () =>
    onStage(
      async ({ tenant, a }) => {
        const first = await a.send('once', { client_ref: 'ref' });
        const again = await a.send('once', { client_ref: 'ref' });
        expect(again).toMatchObject({ type: 'message', payload: first.payload });
        expect(tenant.log.filter(({ frame }) => frame.type === 'message')).toHaveLength(1);
      },
      { unchecked: true },
    ));

  test('MSG4: another device has its own', () =>
    onStage(async ({ tenant, a, b }) => {
      const [one, two] = [await a.send('mine', { client_ref: 'ref' }), await b.send('mine too', { client_ref: 'ref' })];
      expect(one.payload.message_id).not.toBe(two.payload.message_id);
      expect(tenant.log).toHaveLength(2);
    }));

  test('MSG5: with another text it is refused', () =>
    onStage(async ({ tenant, a }) => {
      await a.send('once', { client_ref: 'ref' });
      expect(await a.send('twice', { client_ref: 'ref' })).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
      expect(tenant.log.filter(({ frame }) => frame.type === 'message')).toHaveLength(1);
    }));
});

test('ORD2 ORD3 C23: many sends at once take effect in their order, on every device and in history', () =>
  onStage(async ({ world, a, b }) => {
    const texts = Array.from({ length: 100 }, (_, i) => `number ${i}`);
    world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 20], outbox_ms: [0, 9], bus_ms: [0, 5] };
    await Promise.all(texts.map((text) => a.send(text)));
    await world.advance(1_000);
    for (const device of [a, b]) expect(device.frames('message').map(({ payload }) => payload.text)).toEqual(texts);
    expect((await b.historyAll(lane)).map(({ text }) => text)).toEqual(texts);
  }));

test('ORD2 ORD3 C23: so do those whose files are still going up between them, on a socket that waits for no answer', () =>
  onStage(async ({ world, a, b }) => {
    world.backbone.faults = { ...world.backbone.faults, store_ms: [0, 20], outbox_ms: [0, 9], bus_ms: [0, 5] };
    const texts = Array.from({ length: 50 }, (_, n) => `number ${n}`);
    const bytes = new Uint8Array(5 * 1024 * 1024).fill(7);
    const asked = texts.flatMap((text, n) => {
      if (n % 2 === 0) return [a.send(text)];
      const media_ref = `mu_${n}`;
      a.say('media.upload.start', { media_ref, kind: 'file', mime: 'a/b', size: bytes.length });
      sendBytes(a, bytes);
      return [a.request('media.upload.end', { media_ref }), a.send(text, { media_refs: [media_ref] })];
    });
    for (const answer of await Promise.all(asked)) expect(['message', 'media.upload.ack']).toContain(answer.type);
    await world.advance(1_000);
    for (const device of [a, b]) expect(device.frames('message').map(({ payload }) => payload.text)).toEqual(texts);
    expect((await b.historyAll(lane)).map(({ text }) => text)).toEqual(texts);
  }));

test('ORD2: requests of every kind keep their order', () =>
  onStage(async ({ a }) => {
    const [sent, page, refused, again] = await Promise.all([
      a.send('one'),
      a.history(lane),
      a.send('two', { reply_to: 'm_none' }),
      a.history(lane),
    ]);
    expect(sent.type).toBe('message');
    expect(refused.type).toBe('error');
    for (const { payload } of [page, again]) expect(payload.messages?.map(({ text }) => text)).toEqual(['one']);
  }));

test('MSG12: what is sent while no agent is attached waits, in order, and is handed over when one comes', () =>
  onStage(
    async ({ world, agent, a }) => {
      for (const text of ['one', 'two', 'three']) await a.send(text);
      await world.advance(60_000);
      expect(a.frames('read.receipt')).toEqual([]);
      await agent.connect();
      for (const text of ['one', 'two', 'three']) {
        const turn = await agent.turn();
        expect(turn.text).toBe(text);
        turn.end();
      }
    },
    { agent: false, unchecked: true },
  ));

test('ENV23: a request that nobody can answer is answered internal at its deadline, and not before', () =>
  onStage(
    async ({ world, a }) => {
      for (const session of world.sessions) session.kill();
      const start = world.time.now();
      expect(await a.send('lost')).toMatchObject({ type: 'error', payload: { code: 'internal' } });
      expect(world.time.now() - start).toBeGreaterThanOrEqual(9_900);
      expect(world.time.now() - start).toBeLessThanOrEqual(10_600);
    },
    { unchecked: true, expected: [] },
  ));

test('ENV24 C77: the instance dies with the request: another does it, once, within two seconds', () =>
  onStage(async ({ world, tenant, a, b }) => {
    for (let i = 0; i < 2; i++) {
      const start = world.time.now();
      world.backbone.faults = { ...world.backbone.faults, store_ms: [20, 20] };
      const answer = a.send(`round ${i}`);
      await world.advance(25);
      // Whichever it was: both die in turn, and new ones come.
      world.sessions.filter(({ alive }) => alive)[0]!.kill();
      await world.startSession();
      expect(await answer).toMatchObject({ type: 'message' });
      expect(world.time.now() - start).toBeLessThan(5_000);
      await b.next((frame) => frame.payload.text === `round ${i}`);
    }
    expect(tenant.log.filter(({ frame }) => frame.type === 'message')).toHaveLength(2);
  }));

test('ENV26 ERR5: a store that fails is tried again; what stays broken is internal and tells nothing', () =>
  onStage(
    async ({ world, tenant, a, b }) => {
      world.backbone.failStore = true;
      const answer = a.send('in bad times');
      await world.advance(3_000);
      world.backbone.failStore = false;
      expect(await answer).toMatchObject({ type: 'message' });
      expect((await b.next('message')).payload.text).toBe('in bad times');
      world.backbone.failStore = true;
      const lost = await a.send('in worse times', { within_ms: 12_000 });
      expect(lost).toMatchObject({ type: 'error', payload: { code: 'internal' } });
      expect(lost.payload.message).not.toMatch(/store|postgres|unavailable/i);
      world.backbone.failStore = false;
      await world.advance(2_000);
      expect(tenant.log[0]?.frame.payload.text).toBe('in bad times');
    },
    { unchecked: true, expected: ['*'] },
  ));
