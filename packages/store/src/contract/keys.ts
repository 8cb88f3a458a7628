import type { MessageId, PickerId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { PickerRow } from '../rows.js';
import { flat, message, newTenant, newTurn, type Subject, unique } from './clients.js';

const day = 24 * 3_600_000;
const all = { limit: 100 };

export function keys(subject: Subject): void {
  describe('keys', () => {
    test('LNK7: keys of an agent’s frames go with their time, also when the agent never comes back; not while the frame waits', async () => {
      const { a, b, clock } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const append = (...names: string[]) =>
        a.agentFrames.append(
          tenant_id,
          agent_id,
          names.map((key) => ({ frame: { type: 'turn.start', turn_id: key }, key })),
        );
      await append('acked', 'waits');
      await b.agentFrames.ack(tenant_id, agent_id, 1);
      await clock.advance(day + 1);
      expect(await b.keys.expire(tenant_id, { before: clock.now() - 2 * day, ...all })).toEqual({ expired: 0, more: false });
      expect((await append('acked', 'waits')).map(({ seq }) => seq)).toEqual([0, 2]);
      expect(await b.keys.expire(tenant_id, { before: clock.now() - day, ...all })).toEqual({ expired: 1, more: false });
      // The one is forgotten; the other is known as long as it waits, whatever else the agent acks.
      await b.agentFrames.ack(tenant_id, agent_id, 1);
      expect((await append('waits', 'acked')).map(({ seq }) => seq)).toEqual([2, 3]);
    });

    test('MSG4, LNK27: the key of a deleted message goes; its id goes on refusing it, and one that stands keeps its key', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const [deleted, stands] = [
        message(tenant_id, { idempotency_key: unique('k') }),
        message(tenant_id, { idempotency_key: unique('k') }),
      ];
      await a.messages.insert([{ message: deleted }, { message: stands }]);
      await a.messages.remove(tenant_id, flat, [deleted.message_id], 5_000);
      const underOtherId = (first: typeof deleted) => message(tenant_id, { idempotency_key: first.idempotency_key });
      expect(await b.keys.expire(tenant_id, { before: 5_000, ...all })).toEqual({ expired: 0, more: false });
      expect(await b.messages.insert([{ message: underOtherId(deleted) }])).toEqual(['deleted']);
      expect(await b.keys.expire(tenant_id, { before: 5_001, ...all })).toEqual({ expired: 1, more: false });
      expect(await b.keys.expire(tenant_id, { before: 5_001, ...all })).toEqual({ expired: 0, more: false });
      const turn = newTurn(deleted);
      expect(await b.messages.insert([{ message: deleted, turn }, { message: stands }])).toEqual([
        'deleted',
        { row: stands, inserted: false },
      ]);
      expect(await a.turns.get(tenant_id, turn.turn_id)).toBeUndefined();
      expect(await b.messages.insert([{ message: underOtherId(stands) }])).toEqual([{ row: stands, inserted: false }]);
      expect(await a.messages.deleted(tenant_id, [deleted.message_id])).toEqual(new Set([deleted.message_id]));
      const page = await a.messages.page(tenant_id, flat, { before: deleted.message_id, limit: 5 });
      expect(page).toEqual({ rows: [], has_more: false });
    });

    test('CHA2: the key by which a lane was made goes, the lane and its number stay', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const create = { tenant_id, name: 'Lane', auto: false, idempotency_key: unique<string>('k'), max: 10, at: 7_000 };
      const first = await a.channels.create(create);
      await b.keys.expire(tenant_id, { before: 7_000, ...all });
      expect(await b.channels.create(create)).toEqual({ row: (first as { row: unknown }).row, created: false });
      await b.keys.expire(tenant_id, { before: 7_001, ...all });
      const lanes = await a.channels.list(tenant_id);
      const again = await b.channels.create(create);
      expect(again).toMatchObject({ created: true });
      expect(await a.channels.list(tenant_id)).toEqual([...lanes, (again as { row: unknown }).row]);
    });

    test('PIC8: a picker goes once it is closed and its time is over; an open one stays, whatever its age', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const picker = (fields: Partial<PickerRow>): PickerRow => ({
        ...{ ...flat, tenant_id, picker_id: unique<PickerId>('p'), type: 'picker.choice', payload: {}, turn_id: null, agent_id: null },
        ...{ agent_picker_id: null, state: 'open', value: null, answered_by: null, expires_at: null, created_at: 1_000, ...fields },
      });
      const rows = { open: picker({}), answered: picker({}), long: picker({ expires_at: 9_000 }), young: picker({ created_at: 2_000 }) };
      for (const row of Object.values(rows)) await a.pickers.open(row);
      for (const { picker_id } of [rows.answered, rows.long, rows.young])
        await a.pickers.close(tenant_id, picker_id, { state: 'answered', value: 'x', answered_by: 'k' });
      expect(await b.keys.expire(tenant_id, { before: 2_000, ...all })).toEqual({ expired: 1, more: false });
      const standing = await Promise.all(Object.values(rows).map(({ picker_id }) => a.pickers.get(tenant_id, picker_id)));
      expect(standing.map((row) => row?.state)).toEqual(['open', undefined, 'answered', 'answered']);
    });

    test('at most so many of a kind go at once, of this tenant alone', async () => {
      const { a, b } = subject();
      const [mine, other] = [await newTenant(subject()), await newTenant(subject())];
      const deleteOne = async (tenant_id: (typeof mine)['tenant_id']) => {
        const ids: MessageId[] = [];
        for (let n = 0; n < 5; n++) {
          const row = message(tenant_id, { idempotency_key: unique('k') });
          await a.messages.insert([{ message: row }]);
          ids.push(row.message_id);
        }
        await a.messages.remove(tenant_id, flat, ids, 1);
      };
      await deleteOne(mine.tenant_id);
      await deleteOne(other.tenant_id);
      const take = (tenant_id: (typeof mine)['tenant_id']) => b.keys.expire(tenant_id, { before: 10, limit: 3 });
      expect(await take(mine.tenant_id)).toEqual({ expired: 3, more: true });
      expect(await take(mine.tenant_id)).toEqual({ expired: 2, more: false });
      expect(await take(mine.tenant_id)).toEqual({ expired: 0, more: false });
      expect(await take(other.tenant_id)).toEqual({ expired: 3, more: true });
      expect(await take(unique('tn'))).toEqual({ expired: 0, more: false });
    });
  });
}
