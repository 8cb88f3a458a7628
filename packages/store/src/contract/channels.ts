import type { AgentId, ChatId, Lane, TenantId } from '@iris/protocol';
import { laneKey } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { fill, flat, message, newLane, newTenant, newTurn, type Subject, thread, unique } from './clients.js';

const create = (tenant_id: TenantId, fields: Record<string, unknown> = {}) => ({
  tenant_id,
  name: 'Reports',
  auto: false,
  idempotency_key: unique('k'),
  max: 100,
  at: 50,
  ...fields,
});

export function channels(subject: Subject): void {
  describe('channels', () => {
    test('LNK17: bind: a channel with its threads, those made later too; back with null; never to an agent of another tenant', async () => {
      const { a, b } = subject();
      const [{ tenant_id }, other] = [await newTenant(subject()), await newTenant(subject())];
      const agent_id = unique<AgentId>('ag');
      await a.agents.create({ tenant_id, agent_id, name: 'Second', is_default: false, at: 1_001 });
      const { chat_id } = await newLane(subject(), tenant_id);
      await newLane(subject(), tenant_id, chat_id);
      expect(await b.channels.bind(tenant_id, chat_id, other.agent_id)).toBeUndefined();
      expect(await b.channels.bind(tenant_id, 'android:chan_99' as ChatId, agent_id)).toBeUndefined();
      expect(await b.channels.bind(tenant_id, chat_id, agent_id)).toMatchObject({ chat_id, thread_id: null, agent_id });
      await newLane(subject(), tenant_id, chat_id);
      const bound = async () => (await a.channels.list(tenant_id)).map((row) => row.agent_id);
      expect(await bound()).toEqual([null, agent_id, agent_id, agent_id]);
      expect(await b.channels.bind(tenant_id, chat_id, null)).toMatchObject({ agent_id: null });
      expect(await bound()).toEqual([null, null, null, null]);
    });

    test('create: a channel, and a thread in one; the list is oldest first', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const channel = await a.channels.create(create(tenant_id));
      if (typeof channel === 'string') throw new Error(channel);
      expect(channel).toEqual({
        created: true,
        row: {
          tenant_id,
          chat_id: expect.stringMatching(/^android:chan_\d+$/),
          thread_id: null,
          kind: 'channel',
          name: 'Reports',
          is_default: false,
          auto: false,
          agent_id: null,
          created_at: 50,
        },
      });
      const made = await b.channels.create(create(tenant_id, { chat_id: channel.row.chat_id, auto: true, name: 'Why?', at: 40 }));
      if (typeof made === 'string') throw new Error(made);
      expect(made.row).toEqual({
        ...channel.row,
        thread_id: expect.stringMatching(/^t_\d+$/),
        kind: 'thread',
        name: 'Why?',
        auto: true,
        created_at: 40,
      });
      expect((await a.channels.list(tenant_id)).map(laneKey)).toEqual([flat, channel.row, made.row].map(laneKey));
    });

    test('create: the same key gives the first; no_channel for a thread in nothing, in a thread, in a foreign channel', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      await newLane(subject(), other.tenant_id);
      const foreign = await newLane(subject(), other.tenant_id);
      const row = create(tenant_id);
      const both = await Promise.all([a.channels.create(row), b.channels.create(row)]);
      const [first, second] = both.map((made) => (typeof made === 'string' ? undefined : made));
      expect(first?.row).toEqual(second?.row);
      expect([first?.created, second?.created].sort()).toEqual([false, true]);
      expect(await a.channels.create(create(tenant_id, { chat_id: 'android:chan_99' as ChatId }))).toBe('no_channel');
      expect(await a.channels.create(create(tenant_id, { chat_id: foreign.chat_id }))).toBe('no_channel');
      expect(await a.channels.create(create(unique<TenantId>('tn')))).toBe('no_channel');
    });

    test('create: ids are never given again, also not after a removal, also when many ask at once', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const lanes = await Promise.all(
        Array.from({ length: 10 }, (_, n) => (n % 2 ? a : b).channels.create(create(tenant_id, n % 3 ? {} : { chat_id: flat.chat_id }))),
      );
      const rows = lanes.map((made) => (typeof made === 'string' ? undefined : made.row));
      for (const row of rows) await a.channels.remove(tenant_id, row!);
      const more = await newLane(subject(), tenant_id);
      const thread_ = await newLane(subject(), tenant_id, flat.chat_id);
      const keys = [...rows.map((row) => laneKey(row!)), laneKey(more), laneKey(thread_)];
      expect(new Set(keys).size).toBe(keys.length);
    });

    test('create: over_quota counts channels and threads with the default one, exact when many come at once', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const made = await Promise.all(Array.from({ length: 8 }, (_, n) => (n % 2 ? a : b).channels.create(create(tenant_id, { max: 4 }))));
      expect(made.filter((result) => result === 'over_quota')).toHaveLength(5);
      expect(await a.channels.list(tenant_id)).toHaveLength(4);
    });

    test('rename: anyone without only_if; with only_if only that name and only one that no person gave', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const made = await a.channels.create(create(tenant_id, { chat_id: flat.chat_id, auto: true, name: 'derived' }));
      if (typeof made === 'string') throw new Error(made);
      const lane: Lane = made.row;
      expect(await a.channels.rename(tenant_id, thread(flat.chat_id, 't_999'), 'x', { auto: false })).toBeUndefined();
      expect(await b.channels.rename(tenant_id, lane, 'title', { auto: true, only_if: 'another' })).toBe('conflict');
      expect(await b.channels.rename(tenant_id, lane, 'title', { auto: true, only_if: 'derived' })).toEqual({ ...made.row, name: 'title' });
      // A retry of the same.
      expect(await b.channels.rename(tenant_id, lane, 'title', { auto: true, only_if: 'derived' })).toEqual({ ...made.row, name: 'title' });
      expect(await a.channels.rename(tenant_id, lane, 'mine', { auto: false })).toEqual({ ...made.row, name: 'mine', auto: false });
      expect(await b.channels.rename(tenant_id, lane, 'title 2', { auto: true, only_if: 'mine' })).toBe('conflict');
      expect(await b.channels.rename(tenant_id, lane, 'asked for', { auto: true })).toMatchObject({ name: 'asked for', auto: true });
    });

    test('rename: of two with the same only_if at once, one wins', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      for (let round = 0; round < 10; round++) {
        const made = await a.channels.create(create(tenant_id, { auto: true, name: 'derived' }));
        if (typeof made === 'string') throw new Error(made);
        const results = await Promise.all([
          a.channels.rename(tenant_id, made.row, 'one', { auto: true, only_if: 'derived' }),
          b.channels.rename(tenant_id, made.row, 'two', { auto: true, only_if: 'derived' }),
        ]);
        expect(results.filter((result) => result === 'conflict')).toHaveLength(1);
      }
    });

    test('setDefault: exactly one default, before and after, whoever asks at once', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const lanes = await Promise.all([newLane(subject(), tenant_id), newLane(subject(), tenant_id)]);
      expect(await a.channels.setDefault(tenant_id, 'android:chan_99' as ChatId)).toBe(false);
      const done = await Promise.all(lanes.map((lane, n) => (n ? a : b).channels.setDefault(tenant_id, lane.chat_id)));
      expect(done).toEqual([true, true]);
      const defaults = (await a.channels.list(tenant_id)).filter((row) => row.is_default || row.kind === 'default');
      expect(defaults).toHaveLength(1);
      expect(defaults[0]).toMatchObject({ is_default: true, kind: 'default' });
      expect(lanes.map((lane) => lane.chat_id)).toContain(defaults[0]?.chat_id);
      expect((await a.channels.list(tenant_id)).find((row) => row.chat_id === flat.chat_id)).toMatchObject({ kind: 'channel' });
    });

    test('remove: a channel with its threads and all in them; the default one not, an unknown one not', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const channel = await newLane(subject(), tenant_id);
      const inside = await newLane(subject(), tenant_id, channel.chat_id);
      const kept = message(tenant_id, { media: [{ media_id: 'md_shared' }] });
      const gone = message(tenant_id, {
        ...inside,
        media: [{ media_id: 'md_shared' }, { media_id: 'md_own', thumb_media_id: 'md_thumb' }],
      });
      const turn = newTurn(gone);
      await a.messages.insert([{ message: kept }, { message: gone, turn }]);
      const [deleted] = await fill(subject(), tenant_id, [null], channel);
      await a.messages.remove(tenant_id, channel, [deleted!], 5);
      const started = await a.turns.startNext(tenant_id, inside, { agent_id, max_running: 9 });
      expect(started?.turn_id).toBe(turn.turn_id);

      expect(await a.channels.remove(tenant_id, flat)).toBe('default');
      expect(await a.channels.remove(tenant_id, { ...flat, chat_id: 'android:chan_99' as ChatId })).toBeUndefined();
      const removed = await b.channels.remove(tenant_id, channel);
      if (removed === undefined || removed === 'default') throw new Error(String(removed));
      expect(removed.lanes).toEqual([channel, inside]);
      expect([...removed.media_ids].sort()).toEqual(['md_own', 'md_thumb']);
      expect(removed.running).toEqual([started]);
      expect(await a.channels.remove(tenant_id, channel)).toBeUndefined();

      expect(await a.messages.get(tenant_id, gone.message_id)).toBeUndefined();
      expect(await a.turns.get(tenant_id, turn.turn_id)).toBeUndefined();
      expect(await a.turns.open(tenant_id)).toEqual([]);
      expect(await a.messages.page(tenant_id, channel, { limit: 5 })).toEqual({ rows: [], has_more: false });
      expect((await a.messages.search(tenant_id, { text: 'hello', limit: 9 })).rows.map((row) => row.message_id)).toEqual([
        kept.message_id,
      ]);
      const [late] = await a.messages.insert([{ message: message(tenant_id, inside) }]);
      expect(late).toBe('no_lane');
    });

    test('remove: a thread alone leaves its channel', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const inside = await newLane(subject(), tenant_id, flat.chat_id);
      const [kept] = await fill(subject(), tenant_id, [1]);
      expect(await a.channels.remove(tenant_id, inside)).toEqual({ lanes: [inside], media_ids: [], running: [] });
      expect(await a.messages.get(tenant_id, kept!)).toBeDefined();
    });
  });
}
