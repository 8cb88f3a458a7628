import { lane, onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

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

describe('C113 C115 HIS3 HIS8: paging', () => {
  test('C113: two hundred missed beyond the outbox’s retention: paged back to what is known, without gap or repeat', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const all: string[] = [];
        const say = async (count: number) => {
          for (let i = 0; i < count; i++) {
            all.push((await b.send(`message ${all.length}`)).payload.message_id!);
            await world.advance(20);
          }
        };
        await say(10);
        const away = await tenant.join('away');
        const known = new Set((await away.history(lane)).payload.messages!.map(({ message_id }) => message_id!));
        const position = away.connections[0]!.ack!.payload.sync_cursor;
        away.cut();
        await say(200);
        await away.join();
        expect((await away.sync(position)).payload).toMatchObject({ truncated: true });
        let pages: string[] = [];
        for (let before: string | undefined; ; ) {
          const page = await away.history({ ...lane, limit: 50, ...(before === undefined ? {} : { before_message_id: before }) });
          const ids = page.payload.messages!.map(({ message_id }) => message_id!);
          expect(ids.length).toBeGreaterThan(0);
          pages = [...ids, ...pages];
          before = page.payload.oldest_message_id as string;
          expect(before).toBe(ids[0]);
          if (ids.some((id) => known.has(id))) break;
        }
        expect(pages).toEqual(all.slice(all.length - pages.length));
        expect((await a.history(lane)).payload.has_more).toBe(true);
      },
      { quotas: { outbox_max_frames: 50, waiting_per_lane: 1_000 } },
    ));

  test.each([[50], [100], [101], [0], [1], [49], [51]])('C115: has_more is exact with %i messages and a limit of 50', (count) =>
    onStage(
      async ({ a }) => {
        for (let i = 0; i < count; i++) await a.send(`message ${i}`);
        let seen = 0;
        for (let before: string | undefined; ; ) {
          const { payload } = await a.history({ ...lane, limit: 50, ...(before === undefined ? {} : { before_message_id: before }) });
          seen += payload.messages!.length;
          expect(payload.has_more).toBe(seen < count);
          if (payload.has_more !== true) break;
          expect(payload.messages).toHaveLength(50);
          before = payload.oldest_message_id as string;
        }
        expect(seen).toBe(count);
      },
      { agent: false, quotas: { waiting_per_lane: 1_000 } },
    ),
  );

  test('C115: forty-nine of a page deleted: the next pages are full all the same, none is empty that has more', () =>
    onStage(
      async ({ a, b }) => {
        const ids: string[] = [];
        for (let i = 0; i < 120; i++) ids.push((await a.send(`message ${i}`)).payload.message_id!);
        const gone = ids.slice(60, 109);
        expect((await b.request('message.delete', { message_ids: gone }, lane)).type).toBe('message.deleted');
        const left = ids.filter((id) => !gone.includes(id));
        const page = async (before?: string) => {
          const { payload } = await a.history({ ...lane, limit: 50, ...(before === undefined ? {} : { before_message_id: before }) });
          return { ids: payload.messages!.map(({ message_id }) => message_id!), more: payload.has_more };
        };
        const first = await page();
        expect(first).toEqual({ ids: left.slice(-50), more: true });
        expect(await page(first.ids[0])).toEqual({ ids: left.slice(0, 21), more: false });
        // A deleted one still works by its place.
        expect(await page(gone[0])).toEqual({ ids: ids.slice(10, 60), more: true });
        expect(await page(gone.at(-1))).toEqual({ ids: ids.slice(10, 60), more: true });
        await b.request('message.delete', { message_ids: left }, lane);
        for (const before of [undefined, ids[0], ids[60], ids.at(-1)]) expect(await page(before)).toEqual({ ids: [], more: false });
      },
      { agent: false, quotas: { waiting_per_lane: 1_000 } },
    ));

  test('HIS8 HIS4: deleted while somebody pages, all at one timestamp: each that stays is seen once', () =>
    onStage(
      async ({ a, b }) => {
        const ids = await Promise.all(Array.from({ length: 90 }, async (_, i) => (await a.send(`message ${i}`)).payload.message_id!));
        const seen: string[] = [];
        const deleted = new Set<string>();
        for (let before: string | undefined; ; ) {
          const { payload } = await a.history({ ...lane, limit: 10, ...(before === undefined ? {} : { before_message_id: before }) });
          const page = payload.messages!.map(({ message_id }) => message_id!);
          seen.unshift(...page);
          if (payload.has_more !== true) break;
          before = page[0];
          // The very one that the next page is asked before, one that was seen, and one that was not.
          const at = ids.indexOf(before!);
          const go = [before!, ids[at + 3]!, ids[at - 4]!].filter((id) => id !== undefined && !deleted.has(id));
          for (const id of go) deleted.add(id);
          await b.request('message.delete', { message_ids: go }, lane);
        }
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen).toEqual(ids.filter((id) => seen.includes(id)));
        for (const id of ids) if (!deleted.has(id)) expect(seen).toContain(id);
      },
      { agent: false, quotas: { waiting_per_lane: 1_000 } },
    ));

  test('HIS2 HIS5 C115: limits and positions that are none', () =>
    onStage(async ({ a }) => {
      await a.send('one');
      for (const limit of ['50', null, [], {}, true])
        expect(await a.request('history', { limit: limit as never }, lane)).toMatchObject({
          type: 'error',
          payload: { code: 'unsupported', message: expect.stringMatching(/^limit/) },
        });
      for (const limit of [0, -1, 1.5, 201, 1e9, -0.5])
        expect((await a.request('history', { limit }, lane)).payload.messages).toHaveLength(1);
      for (const before_message_id of [7, '', 'x'.repeat(129), []])
        expect(await a.request('history', { before_message_id: before_message_id as never }, lane)).toMatchObject({
          type: 'error',
          payload: { code: 'unsupported', message: expect.stringMatching(/^before_message_id/) },
        });
      for (const before_message_id of ['__proto__', 'constructor', 'toString', ' ', '\u0000'])
        expect(await a.request('history', { before_message_id }, lane)).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    }));

  test('HIS5: a message of another lane is no position in this one', () =>
    onStage(async ({ agent, a }) => {
      const { payload } = await a.request('channel.create', { name: 'other' });
      const elsewhere = await a.send('elsewhere', { chat_id: payload.chat_id! });
      (await agent.turn()).end();
      expect(await a.history({ ...lane, before_message_id: elsewhere.payload.message_id! })).toMatchObject({
        type: 'error',
        payload: { code: 'not_found' },
      });
    }));
});
