import type { ChatId, DeviceId, MessageId, TenantId, TurnId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { MessageRow } from '../rows.js';
import { fill, flat, message, newLane, newTenant, newTurn, queueTurn, type Subject, unique } from './clients.js';

const full = (tenant_id: TenantId): MessageRow =>
  message(tenant_id, {
    role: 'assistant',
    text: 'Zürich 🦊 "quotes" \\ back\nline',
    reasoning: 'because',
    media: [{ media_id: 'md_1', kind: 'image', width: 3 }],
    reply_to: 'm_before' as MessageId,
    model: 'qwen3-27b',
    tokens: 4_000_000_000,
    runtime: { model: 'x', latency: 22.5, cost: 0.0012, nested: [null, { a: true }] },
    cursor: 12,
    idempotency_key: unique('k'),
    client_ref: 'ref',
    device_id: 'phone' as DeviceId,
    turn_id: 'tn_1' as TurnId,
    steer: true,
    interrupted: true,
    late: true,
  });

export function insertion(subject: Subject): void {
  describe('messages: insert', () => {
    test('every field comes back as it was', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const rows = [full(tenant_id), message(tenant_id)];
      expect(await a.messages.insert(rows.map((row) => ({ message: row })))).toEqual(rows.map((row) => ({ row, inserted: true })));
      for (const row of rows) expect(await b.messages.get(tenant_id, row.message_id)).toEqual(row);
      expect(await a.messages.insert([])).toEqual([]);
    });

    test('nothing crosses tenants: ids, keys', async () => {
      const { a } = subject();
      const one = await newTenant(subject());
      const two = await newTenant(subject());
      const row = full(one.tenant_id);
      const twin = { ...row, tenant_id: two.tenant_id, text: 'another' };
      const results = await a.messages.insert([{ message: row }, { message: twin }]);
      expect(results).toEqual([
        { row, inserted: true },
        { row: twin, inserted: true },
      ]);
      const stranger = await newTenant(subject());
      expect(await a.messages.get(stranger.tenant_id, row.message_id)).toBeUndefined();
    });

    test('many rows of many tenants, with turns, in order', async () => {
      const { a, b } = subject();
      const owners = await Promise.all(Array.from({ length: 4 }, () => newTenant(subject())));
      const rows = Array.from({ length: 100 }, (_, n) => {
        const row = message(owners[n % 4]!.tenant_id, { text: `n${n}` });
        return { message: row, ...(n % 3 ? { turn: newTurn(row) } : {}) };
      });
      const results = await a.messages.insert(rows);
      expect(results).toEqual(rows.map(({ message: row }) => ({ row, inserted: true })));
      for (const [index, { tenant_id }] of owners.entries()) {
        const mine = rows.filter((_, n) => n % 4 === index);
        const page = await b.messages.page(tenant_id, flat, { limit: 100 });
        expect(page === 'unknown_before' ? page : page.rows.map((row) => row.text)).toEqual(mine.map(({ message: row }) => row.text));
        expect(await b.turns.waiting(tenant_id, flat)).toBe(mine.filter((row) => row.turn).length);
      }
    });

    test('the turn that comes with a message: queued, at the end of its lane, first attempt', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const row = message(tenant_id, lane);
      const turn = newTurn(row, { device_id: 'phone' as DeviceId });
      await a.messages.insert([{ message: row, turn }]);
      expect(await a.turns.get(tenant_id, turn.turn_id)).toEqual({
        ...turn,
        ...lane,
        tenant_id,
        state: 'queued',
        outcome: null,
        attempt: 1,
        boot_id: null,
        stop_requested: false,
        position: expect.any(Number),
        accepted_at: null,
        ended_at: null,
      });
      const later = await queueTurn(subject(), tenant_id, {}, lane);
      expect(later.position).toBeGreaterThan((await a.turns.get(tenant_id, turn.turn_id))!.position);
    });

    test('a key or id that stands: the first row comes back, and neither message nor turn goes in', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const first = full(tenant_id);
      await a.messages.insert([{ message: first }]);
      const sameKey = message(tenant_id, { idempotency_key: first.idempotency_key, text: 'retry' });
      const sameId = message(tenant_id, { message_id: first.message_id, text: 'again' });
      const turns = [newTurn(sameKey), newTurn(sameId)];
      const fresh = message(tenant_id);
      const results = await b.messages.insert([
        { message: sameKey, turn: turns[0]! },
        { message: fresh },
        { message: sameId, turn: turns[1]! },
      ]);
      expect(results).toEqual([
        { row: first, inserted: false },
        { row: fresh, inserted: true },
        { row: first, inserted: false },
      ]);
      expect(await a.messages.get(tenant_id, sameKey.message_id)).toBeUndefined();
      for (const turn of turns) expect(await a.turns.get(tenant_id, turn.turn_id)).toBeUndefined();
    });

    test('repeats within one call are the same as one after another', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const first = full(tenant_id);
      const sameKey = message(tenant_id, { idempotency_key: first.idempotency_key });
      const sameId = message(tenant_id, { message_id: first.message_id });
      const nowhere = message(tenant_id, { chat_id: 'android:chan_99' as ChatId, idempotency_key: unique('k') });
      const elsewhere = message(tenant_id, { idempotency_key: nowhere.idempotency_key });
      const results = await a.messages.insert([first, sameKey, sameId, nowhere, elsewhere].map((row) => ({ message: row })));
      expect(results).toEqual([
        { row: first, inserted: true },
        { row: first, inserted: false },
        { row: first, inserted: false },
        'no_lane',
        { row: elsewhere, inserted: true },
      ]);
    });

    test('no_lane: one row without a channel does not touch the others', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const rows = [
        message(tenant_id),
        message(tenant_id, { chat_id: 'android:chan_99' as ChatId }),
        message(unique<TenantId>('tn')),
        message(tenant_id),
      ];
      const results = await a.messages.insert(rows.map((row) => ({ message: row, turn: newTurn(row) })));
      expect(results.map((result) => (typeof result === 'string' ? result : result.inserted))).toEqual([true, 'no_lane', 'no_lane', true]);
      expect(await a.turns.waiting(tenant_id, flat)).toBe(2);
    });

    test('a row that no database can hold does not take the others with it', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const innocent = message(other.tenant_id);
      const odd = [
        message(tenant_id, { text: 'nul \u0000 here', reasoning: 'half \ud83e' }),
        message(tenant_id, { runtime: { 'key \udd8a': ['\u0000', 1e308] }, tokens: 1e300 }),
        message(tenant_id, { tokens: 1.5, text: 'x'.repeat(500_000) }),
      ];
      const kept = [
        { ...odd[0]!, text: 'nul \ufffd here', reasoning: 'half \ufffd' },
        { ...odd[1]!, runtime: { 'key \ufffd': ['\ufffd', 1e308] }, tokens: null },
        { ...odd[2]!, tokens: null },
      ];
      const results = await a.messages.insert([odd[0]!, innocent, odd[1]!, odd[2]!].map((row) => ({ message: row })));
      expect(results).toEqual([kept[0], innocent, kept[1], kept[2]].map((row) => ({ row, inserted: true })));
      for (const row of [...kept, innocent]) expect(await b.messages.get(row.tenant_id, row.message_id)).toEqual(row);
      expect(await b.messages.replace({ ...odd[0]!, tokens: Number.NaN })).toEqual({ ...kept[0], tokens: null });
    });

    test('a lane that goes away under inserts: each row is in or no_lane, and none is left behind', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      for (let round = 0; round < 5; round++) {
        const lane = await newLane(subject(), tenant_id);
        const calls = Array.from({ length: 8 }, () => [message(tenant_id, lane), message(tenant_id)]);
        const [results] = await Promise.all([
          Promise.all(calls.map((rows) => a.messages.insert(rows.map((row) => ({ message: row, turn: newTurn(row) }))))),
          b.channels.remove(tenant_id, lane),
        ]);
        for (const [inLane, outside] of results) {
          expect(inLane === 'no_lane' || (typeof inLane === 'object' && inLane.inserted)).toBe(true);
          expect(outside).toMatchObject({ inserted: true });
        }
        for (const rows of calls) expect(await a.messages.get(tenant_id, rows[0]!.message_id)).toBeUndefined();
        expect(await a.turns.waiting(tenant_id, lane)).toBe(0);
      }
    });

    test('the same key from many callers at once: one message, one turn, the same answer for all', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const idempotency_key = unique('k');
      const attempts = Array.from({ length: 10 }, () => message(tenant_id, { idempotency_key }));
      const turns = attempts.map((row) => newTurn(row));
      const results = await Promise.all(
        attempts.map((row, n) => (n % 2 ? a : b).messages.insert([{ message: message(tenant_id) }, { message: row, turn: turns[n]! }])),
      );
      const outcomes = results.map(([, outcome]) => outcome);
      const winner = outcomes.find((outcome) => typeof outcome === 'object' && outcome.inserted);
      expect(outcomes.filter((outcome) => typeof outcome === 'object' && outcome.inserted)).toHaveLength(1);
      for (const outcome of outcomes) expect(outcome).toMatchObject({ row: (winner as { row: MessageRow }).row });
      expect(await a.turns.waiting(tenant_id, flat)).toBe(1);
    });

    test('batches that cross each other do not lock each other out', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const rows = Array.from({ length: 60 }, () => message(tenant_id, { idempotency_key: unique('k') }));
      const forward = rows.map((row) => ({ message: row }));
      const results = await Promise.all([
        a.messages.insert(forward),
        b.messages.insert([...forward].reverse()),
        a.messages.insert(forward.slice(20)),
        b.messages.insert(forward.slice(0, 40).reverse()),
      ]);
      const inserted = results.flat().filter((result) => typeof result === 'object' && result.inserted);
      expect(inserted).toHaveLength(rows.length);
      expect(results.flat().every((result) => typeof result === 'object')).toBe(true);
    });

    test('replace: new content under the same id; place, keys, lane, device and turn stay', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const first = { ...full(tenant_id), late: false };
      await a.messages.insert([{ message: first }]);
      const final = message(tenant_id, {
        ...lane,
        message_id: first.message_id,
        role: 'assistant',
        text: 'whole',
        late: true,
        ts: 9,
        media: [{ media_id: 'md_2' }],
      });
      const kept = (({ chat_id, thread_id, cursor, idempotency_key, client_ref, device_id, turn_id }) => ({
        ...{ chat_id, thread_id, cursor },
        ...{ idempotency_key, client_ref, device_id, turn_id },
      }))(first);
      const replaced = { ...final, ...kept };
      expect(await b.messages.replace(final)).toEqual(replaced);
      expect(await a.messages.get(tenant_id, first.message_id)).toEqual(replaced);
      expect((await a.messages.search(tenant_id, { text: 'whole', limit: 5 })).rows).toHaveLength(1);
      expect((await a.messages.search(tenant_id, { text: 'Zürich', limit: 5 })).rows).toHaveLength(0);
      expect((await a.messages.remove(tenant_id, flat, [first.message_id], 9)).media_ids).toEqual(['md_2']);
      expect(await a.messages.replace(final)).toBeUndefined();
      expect(await a.messages.replace(message(tenant_id))).toBeUndefined();
    });

    test('setCursors: of many tenants at once; a place once given stays', async () => {
      const { a, b } = subject();
      const one = await newTenant(subject());
      const two = await newTenant(subject());
      const [x] = await fill(subject(), one.tenant_id, [null]);
      const [y] = await fill(subject(), two.tenant_id, [null]);
      await b.messages.setCursors([
        { tenant_id: one.tenant_id, message_id: x!, cursor: 7 },
        { tenant_id: two.tenant_id, message_id: y!, cursor: 8 },
        { tenant_id: two.tenant_id, message_id: unique<MessageId>('m'), cursor: 9 },
      ]);
      await a.messages.setCursors([{ tenant_id: one.tenant_id, message_id: x!, cursor: 70 }]);
      await a.messages.setCursors([]);
      expect((await a.messages.get(one.tenant_id, x!))?.cursor).toBe(7);
      expect((await a.messages.get(two.tenant_id, y!))?.cursor).toBe(8);
    });

    test('owed: without a cursor, of any tenant, older than that, oldest first; not the deleted', async () => {
      const { a } = subject();
      const one = await newTenant(subject());
      const two = await newTenant(subject());
      // Years before what other tests leave behind.
      const rows = [30, 20, 10, 40].map((ts, n) => message((n % 2 ? one : two).tenant_id, { ts }));
      const placed = message(one.tenant_id, { ts: 15, cursor: 3 });
      const deleted = message(one.tenant_id, { ts: 16 });
      await a.messages.insert([...rows, placed, deleted].map((row) => ({ message: row })));
      await a.messages.remove(one.tenant_id, flat, [deleted.message_id], 17);
      expect(await a.messages.owed({ before_ts: 40, limit: 10 })).toEqual([rows[2], rows[1], rows[0]]);
      expect(await a.messages.owed({ before_ts: 40, limit: 1 })).toEqual([rows[2]]);
      await a.messages.setCursors(rows.map((row, n) => ({ tenant_id: row.tenant_id, message_id: row.message_id, cursor: n + 1 })));
      expect(await a.messages.owed({ before_ts: 41, limit: 10 })).toEqual([]);
    });
  });
}
