import { type AnyFrame, lane, onStage, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

interface Hit {
  readonly message_id: string;
  readonly chat_id: string;
  readonly thread_id: string | null;
  readonly role: string;
  readonly snippet: string;
}
const hitsOf = (answer: AnyFrame) => answer.payload.hits as unknown as readonly Hit[];
const find = async (device: TestDevice, query: string, scope = {}): Promise<string[]> =>
  hitsOf(await device.request('search', { query }, scope)).map(({ snippet }) => snippet);

describe('search', () => {
  test('SEA6 SEA1: what was acknowledged is found at once, asked through the other edge, in any script', () =>
    onStage(async ({ a, b }) => {
      for (const [text, query] of [
        ['Deploy the Café service', 'cafe SERVICE'],
        ['今天天气很好，我们去公园散步吧。', '公园'],
        ['СПАСИБО большое', 'спасибо'],
        ['วันนี้อากาศดีมาก', 'อากาศ'],
        ['אני אוהב שָׁלוֹם', 'שלום'],
        ['look 👨‍👩‍👧 there', '👨‍👩‍👧'],
      ] as const) {
        const { message_id } = (await a.send(text)).payload;
        const answer = await b.request('search', { query, scope: 'all' });
        expect(answer).toMatchObject({ type: 'search.results', payload: { query, scope: 'all', has_more: false } });
        expect(hitsOf(answer)).toEqual([{ message_id, ...lane, role: 'user', snippet: text, ts: expect.any(Number) }]);
      }
    }));

  test('SEA6: so is what an agent says, when it is final, and what steers it; a running text, commentary and reasoning are not', () =>
    onStage(async ({ a, agent }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.commentary('zebra in commentary');
      turn.start();
      turn.reason('zebra in reasoning');
      turn.delta('zebra half');
      await a.next('message.update');
      expect(await find(a, 'zebra')).toEqual([]);
      await a.request('agent.steer', { text: 'zebra steers' }, lane);
      expect(await find(a, 'zebra')).toEqual(['zebra steers']);
      turn.stop({ final_text: 'zebra whole' });
      await a.next('message.stop');
      expect(await find(a, 'zebra')).toEqual(['zebra whole', 'zebra steers']);
      turn.end();
      await a.next('agent.idle');
    }));

  test('SEA3: best first, newer first among equals, at most 50, has_more exact', () =>
    onStage(
      async ({ world, a }) => {
        const texts = Array.from({ length: 50 }, (_, n) => `foxes ${n}`);
        await a.send('the red fox ran');
        for (const text of texts) {
          await a.send(text);
          await world.advance(50);
        }
        const most = await a.request('search', { query: 'fox', scope: 'all' });
        expect(most.payload.has_more).toBe(true);
        expect(hitsOf(most).map(({ snippet }) => snippet)).toEqual(['the red fox ran', ...texts.toReversed().slice(0, 49)]);
        await a.request('message.delete', { message_ids: [hitsOf(most)[1]!.message_id] }, lane);
        const all = await a.request('search', { query: 'fox', scope: 'all' });
        expect(all.payload.has_more).toBe(false);
        expect(hitsOf(all)).toHaveLength(50);
      },
      { quotas: { waiting_per_lane: 1_000 } },
    ));

  test('SEA4: a snippet of at most 160 code points around the match, with no character cut', () =>
    onStage(async ({ a }) => {
      await a.send(`${'👨‍👩‍👧‍👦'.repeat(500)} needle ${'🇩🇪'.repeat(500)}`);
      const [snippet] = await find(a, 'needle');
      expect(snippet).toMatch(/^…(👨‍👩‍👧‍👦)+ needle (🇩🇪)+…$/u);
      expect([...snippet!].length).toBeLessThanOrEqual(160);
    }));

  test('SEA5 C110: any text is a query; none is an error, and none has an effect', () =>
    onStage(async ({ a }) => {
      await a.send(`team:foo costs 100% of "it's" \\ a <-> b`);
      for (const query of ['', ' ', '\u3000', '"', '""', '-x', '-"x y', '\0', '\ud800', '\u200b']) expect(await find(a, query)).toEqual([]);
      for (const query of ['team:foo', '100%', '\\', '<->', `it's`, '"a <-> b"', '%']) expect(await find(a, query)).toHaveLength(1);
      const odd = [
        `'":*`,
        '&!',
        '%_',
        "x'; DROP TABLE message; --",
        '\\\\',
        'a & | b',
        '(((',
        '$1',
        '!foo',
        '"'.repeat(1_024),
        '𠮷'.repeat(512),
      ];
      for (const query of odd) expect((await a.request('search', { query })).type).toBe('search.results');
      expect(await find(a, 'team')).toHaveLength(1);
      for (const [payload, field] of [
        [{}, 'query'],
        [{ query: 7 }, 'query'],
        [{ query: null }, 'query'],
        [{ query: 'x'.repeat(1_025) }, 'query'],
        [{ query: 'x', scope: 'tenant' }, 'scope'],
        [{ query: 'x', scope: 'chat' }, 'chat_id'],
      ] as const)
        expect(await a.request('search', payload as never)).toMatchObject({
          type: 'error',
          payload: { code: 'unsupported', message: expect.stringMatching(new RegExp(`^${field}`)) },
        });
    }));

  test('SEA2 O7: everywhere, of one channel without its threads, of one thread; never of another tenant', () =>
    onStage(async ({ world, a, b }) => {
      const stranger = await (await world.tenant()).join('stranger');
      await stranger.send('needle of theirs');
      const thread = (await a.request('channel.create', { name: 'Inside', kind: 'thread', parent_chat_id: lane.chat_id })).payload;
      const inside = { chat_id: lane.chat_id, thread_id: thread.thread_id as string };
      const other = { chat_id: (await a.request('channel.create', { name: 'Other' })).payload.chat_id as string };
      await a.send('needle in the default');
      await a.send('needle inside', inside);
      await a.send('needle in other', other);
      const all = ['needle in other', 'needle inside', 'needle in the default'];
      expect(await find(b, 'needle')).toEqual(all);
      expect(hitsOf(await b.request('search', { query: 'needle', scope: 'all' }, other)).length).toBe(3);
      const chat = async (scope: object) =>
        hitsOf(await b.request('search', { query: 'needle', scope: 'chat' }, scope)).map((hit) => hit.snippet);
      expect(await chat(lane)).toEqual(['needle in the default']);
      expect(await chat(inside)).toEqual(['needle inside']);
      expect(await chat(other)).toEqual(['needle in other']);
      const theirs = (await stranger.request('channel.create', { name: 'Theirs' })).payload.chat_id as string;
      const unknown = await b.request('search', { query: 'needle', scope: 'chat' }, { chat_id: 'android:chan_77' });
      expect(unknown).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      expect((await b.request('search', { query: 'needle', scope: 'chat' }, { chat_id: theirs })).payload).toEqual(unknown.payload);
      const elsewhere = await b.request('search', { query: 'needle', scope: 'chat' }, { ...other, thread_id: inside.thread_id });
      expect(elsewhere).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      await stranger.close();
    }));

  test('DEL2 CHA9 O11: what was deleted, and what stood in a channel that was, is found no more', () =>
    onStage(async ({ a, b, agent }) => {
      const other = { chat_id: (await a.request('channel.create', { name: 'Other' })).payload.chat_id as string };
      const gone = (await a.send('needle one')).payload.message_id!;
      await a.send('needle two');
      await a.send('needle three', other);
      await b.request('message.delete', { message_ids: [gone] }, lane);
      expect(await find(a, 'needle')).toEqual(['needle three', 'needle two']);
      await b.request('channel.delete', {}, other);
      expect(await find(a, 'needle')).toEqual(['needle two']);
      expect(hitsOf(await agent.request('search', { query: 'needle', scope: 'all' })).map(({ snippet }) => snippet)).toEqual([
        'needle two',
      ]);
    }));

  test('LNK39 SEA2: an agent searches as a device does, and is answered alone', () =>
    onStage(async ({ a, b, agent }) => {
      const other = { chat_id: (await a.request('channel.create', { name: 'Other' })).payload.chat_id as string };
      await a.send('alpha needle');
      await a.send('needled beta', other);
      const asked = async (payload: object, scope = {}) =>
        hitsOf(await agent.request('search', payload as never, scope)).map((hit) => hit.snippet);
      expect(await asked({ query: 'needle', scope: 'all' })).toEqual(['alpha needle', 'needled beta']);
      expect(await asked({ query: 'needle', scope: 'chat' }, other)).toEqual(['needled beta']);
      expect(await asked({ query: '' })).toEqual([]);
      expect(await agent.request('search', { query: 'needle', scope: 'chat' }, { chat_id: 'android:chan_77' })).toMatchObject({
        type: 'error',
        payload: { code: 'not_found' },
      });
      for (const device of [a, b]) expect(device.frames('search.results')).toEqual([]);
    }));
});
