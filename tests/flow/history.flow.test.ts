import { lane, onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

const texts = (page: { payload: { messages?: readonly { text?: string }[] } }) => page.payload.messages?.map(({ text }) => text);

test('HIS1 HIS3 HIS4 HIS8 C115: pages, oldest first, with an exact has_more', () =>
  onStage(async ({ a }) => {
    const all = Array.from({ length: 101 }, (_, i) => `message ${i}`);
    for (const text of all) await a.send(text);
    const newest = await a.history({ ...lane, limit: 50 });
    expect(newest).toMatchObject({ type: 'history', ...lane, payload: { has_more: true } });
    expect(texts(newest)).toEqual(all.slice(51));
    expect(newest.payload.oldest_message_id).toBe(newest.payload.messages?.[0]?.message_id);
    const second = await a.history({ ...lane, limit: 50, before_message_id: newest.payload.oldest_message_id as string });
    expect(texts(second)).toEqual(all.slice(1, 51));
    expect(second.payload.has_more).toBe(true);
    const third = await a.history({ ...lane, limit: 50, before_message_id: second.payload.oldest_message_id as string });
    expect(texts(third)).toEqual(all.slice(0, 1));
    expect(third.payload.has_more).toBe(false);
    const fourth = await a.history({ ...lane, before_message_id: third.payload.oldest_message_id as string });
    expect(fourth.payload).toMatchObject({ messages: [], has_more: false });
    for (const limit of [100, 101]) expect((await a.history({ ...lane, limit })).payload.has_more).toBe(limit === 100);
  }));

test('HIS2: limit is clamped to 1–200, 50 when absent, whole', () =>
  onStage(
    async ({ world, a }) => {
      for (let i = 0; i < 201; i++) {
        await a.send(`message ${i}`);
        await world.advance(50);
      }
      const count = async (payload: object) => (await a.request('history', payload as never, lane)).payload.messages?.length;
      expect(await count({})).toBe(50);
      expect(await count({ limit: 0 })).toBe(1);
      expect(await count({ limit: -7 })).toBe(1);
      expect(await count({ limit: 1.9 })).toBe(1);
      expect(await count({ limit: 200 })).toBe(200);
      expect(await count({ limit: 100_000 })).toBe(200);
    },
    { quotas: { waiting_per_lane: 1_000 } },
  ));

test('HIS5 ENV27: an unknown or foreign before_message_id, or lane, is not_found', () =>
  onStage(async ({ world, a }) => {
    const theirs = await (await world.tenant()).join('stranger');
    const foreign = await theirs.send('theirs');
    const refused = await a.history({ ...lane, before_message_id: 'm_never' });
    expect(refused).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    expect((await a.history({ ...lane, before_message_id: foreign.payload.message_id! })).payload).toEqual(refused.payload);
    for (const scope of [{ chat_id: 'android:chan_9' }, { chat_id: 'android:default', thread_id: 't_9' }])
      expect(await a.history(scope)).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
  }));

test('HIS6: a running message is not in it until it stops; null as before_message_id is none', () =>
  onStage(async ({ agent, a }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('half');
    await a.next('message.update');
    expect(texts(await a.request('history', { before_message_id: null }, lane))).toEqual(['question']);
    turn.stop({ final_text: 'whole', reasoning: 'why', model: 'm', tokens: 5 });
    turn.end();
    await a.next('message.stop');
    expect((await a.history(lane)).payload.messages?.at(-1)).toMatchObject({
      role: 'assistant',
      text: 'whole',
      reasoning: 'why',
      model: 'm',
      tokens: 5,
      runtime: expect.anything(),
    });
    await a.next('agent.idle');
  }));

test('HIS7: what was acknowledged is in history, asked through the other edge at once', () =>
  onStage(async ({ a, b }) => {
    for (let i = 0; i < 20; i++) {
      await a.send(`message ${i}`);
      expect(texts(await b.history({ ...lane, limit: 1 }))).toEqual([`message ${i}`]);
    }
  }));

test('ORD3 MSG7 C24: instances whose clocks disagree by minutes: the order is the cursors’, everywhere', () =>
  onStage(async ({ world, a, b }) => {
    const sent = [];
    for (let i = 0; i < 6; i++) {
      for (const [n, { node }] of world.sessions.entries()) node.clock.skew(n % 2 === i % 2 ? 600_000 : -600_000);
      await (i % 2 ? a : b).send(`message ${i}`);
      sent.push(`message ${i}`);
    }
    expect(texts(await a.history(lane))).toEqual(sent);
    for (const { node } of world.sessions) node.clock.skew(0);
    await world.advance(100);
    expect(b.frames('message').map(({ payload }) => payload.text)).toEqual(sent);
  }));
