import type { ChatId, MessageId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { fill, flat, message, newLane, newTenant, newTurn, type Subject, unique } from './clients.js';

export function deletion(subject: Subject): void {
  describe('messages: remove', () => {
    test('HIS9: aged: the oldest by place that are older than asked; not what has no place, was deleted, or has a turn to come', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const old = [1, 2, 3, 4, 5].map((cursor) => message(tenant_id, { ...(cursor === 2 ? lane : flat), cursor, ts: cursor * 10 }));
      const young = message(tenant_id, { cursor: 6, ts: 1_000 });
      const owed = message(tenant_id, { ts: 5 });
      const [first, inLane, queued, gone, last] = old as [
        (typeof old)[0],
        (typeof old)[0],
        (typeof old)[0],
        (typeof old)[0],
        (typeof old)[0],
      ];
      const turn = newTurn(queued);
      await a.messages.insert([...old, young, owed].map((row) => ({ message: row, ...(row === queued ? { turn } : {}) })));
      await a.messages.remove(tenant_id, flat, [gone.message_id], 9);
      const named = (...rows: (typeof old)[number][]) =>
        rows.map(({ message_id, chat_id, thread_id }) => ({ message_id, chat_id, thread_id }));
      expect(await b.messages.aged(tenant_id, { before_ts: 100, limit: 9 })).toEqual(named(first, inLane, last));
      expect(await b.messages.aged(tenant_id, { before_ts: 50, limit: 9 })).toEqual(named(first, inLane));
      expect(await b.messages.aged(tenant_id, { before_ts: 100, limit: 2 })).toEqual(named(first, inLane));
      await a.turns.end(tenant_id, turn.turn_id, { outcome: 'completed', at: 9 });
      expect(await b.messages.aged(tenant_id, { before_ts: 100, limit: 9 })).toEqual(named(first, inLane, queued, last));
      expect(await b.messages.aged((await newTenant(subject())).tenant_id, { before_ts: 100, limit: 9 })).toEqual([]);
    });

    test('gone from everywhere; once only; the ids that stood come back', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const ids = await fill(subject(), tenant_id, [1, 2, null]);
      const unknown = unique<MessageId>('m');
      const removed = await b.messages.remove(tenant_id, flat, [ids[1]!, unknown, ids[2]!, ids[1]!], 9);
      expect(removed).toEqual({ removed: [ids[1], ids[2]], media_ids: [] });
      expect(await a.messages.remove(tenant_id, flat, [ids[1]!], 10)).toEqual({ removed: [], media_ids: [] });
      expect(await a.messages.get(tenant_id, ids[1]!)).toBeUndefined();
      expect((await a.messages.standing(tenant_id, ids.slice(0, 2))).map(({ message_id }) => message_id)).toEqual([ids[0]]);
      const page = await a.messages.page(tenant_id, flat, { limit: 9 });
      expect(page === 'unknown_before' ? page : page.rows.map((row) => row.message_id)).toEqual([ids[0]]);
      expect((await a.messages.search(tenant_id, { text: 'text', limit: 9 })).rows).toHaveLength(1);
      expect(await a.messages.deleted(tenant_id, [...ids, unknown, unique<MessageId>('m')])).toEqual(new Set([ids[1], ids[2], unknown]));
      expect(await a.messages.deleted(tenant_id, [])).toEqual(new Set());
    });

    test('a late insert of a deleted one is refused: by id, by key, of a never stored one; with its turn', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = message(tenant_id, { idempotency_key: unique('k') });
      const running = message(tenant_id, { role: 'assistant' });
      await a.messages.insert([{ message: row }]);
      await a.messages.remove(tenant_id, flat, [row.message_id, running.message_id], 9);
      const sameKey = message(tenant_id, { idempotency_key: row.idempotency_key });
      const turn = newTurn(sameKey);
      const fresh = message(tenant_id);
      const results = await b.messages.insert([{ message: row }, { message: running }, { message: fresh }, { message: sameKey, turn }]);
      expect(results).toEqual(['deleted', 'deleted', { row: fresh, inserted: true }, 'deleted']);
      expect(await a.turns.get(tenant_id, turn.turn_id)).toBeUndefined();
      expect(await a.messages.get(tenant_id, running.message_id)).toBeUndefined();
    });

    test('insert and remove of one id at once: it ends deleted, whoever was first', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      for (let round = 0; round < 20; round++) {
        const row = message(tenant_id);
        const [[outcome], removed] = await Promise.all([
          a.messages.insert([{ message: row }]),
          b.messages.remove(tenant_id, flat, [row.message_id], 9),
        ]);
        if (outcome === 'deleted') expect(removed.removed).toEqual([]);
        else expect(removed.removed).toEqual([row.message_id]);
        expect(await a.messages.get(tenant_id, row.message_id)).toBeUndefined();
        expect(await a.messages.deleted(tenant_id, [row.message_id])).toEqual(new Set([row.message_id]));
      }
    });

    test('messages of another lane or tenant are left alone, and a lane that is not there remembers nothing', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const [elsewhere] = await fill(subject(), tenant_id, [1], lane);
      const [foreign] = await fill(subject(), other.tenant_id, [1]);
      expect((await a.messages.remove(tenant_id, flat, [elsewhere!, foreign!], 9)).removed).toEqual([]);
      expect(await a.messages.get(tenant_id, elsewhere!)).toBeDefined();
      expect(await a.messages.get(other.tenant_id, foreign!)).toBeDefined();
      expect(await a.messages.deleted(tenant_id, [elsewhere!])).toEqual(new Set());
      const nowhere = { ...flat, chat_id: 'android:chan_99' as ChatId };
      const id = unique<MessageId>('m');
      expect(await a.messages.remove(tenant_id, nowhere, [id], 9)).toEqual({ removed: [], media_ids: [] });
      expect(await a.messages.deleted(tenant_id, [id])).toEqual(new Set());
    });

    test('media_ids: those that no message left names, previews too', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const rows = [
        message(tenant_id, { media: [{ media_id: 'md_1', thumb_media_id: 'md_1t' }, { media_id: 'md_2' }] }),
        message(tenant_id, { media: [{ media_id: 'md_2' }] }),
        message(other.tenant_id, { media: [{ media_id: 'md_1' }] }),
      ];
      await a.messages.insert(rows.map((row) => ({ message: row })));
      const first = await a.messages.remove(tenant_id, flat, [rows[0]!.message_id], 9);
      expect([...first.media_ids].sort()).toEqual(['md_1', 'md_1t']);
      expect((await a.messages.remove(tenant_id, flat, [rows[1]!.message_id], 9)).media_ids).toEqual(['md_2']);
    });
  });
}
