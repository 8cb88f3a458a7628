import type { AgentId, ChatId, PickerId, TenantId, TurnId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { PickerRow } from '../rows.js';
import { flat, newTenant, type Subject, unique } from './clients.js';

const picker = (tenant_id: TenantId, fields: Partial<PickerRow> = {}): PickerRow => ({
  ...flat,
  tenant_id,
  picker_id: unique<PickerId>('p'),
  type: 'picker.choice',
  payload: { title: 'Effort', choices: [{ value: 'low', label: 'Low' }] },
  turn_id: 'tn_1' as TurnId,
  agent_id: 'ag_1' as AgentId,
  agent_picker_id: 'own',
  state: 'open',
  value: null,
  answered_by: null,
  expires_at: null,
  created_at: 10,
  ...fields,
});

export function pickers(subject: Subject): void {
  describe('pickers', () => {
    test('open: once; false again, and without its lane', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = picker(tenant_id);
      expect(await a.pickers.open(row)).toBe(true);
      expect(await b.pickers.open({ ...row, payload: {} })).toBe(false);
      expect(await b.pickers.get(tenant_id, row.picker_id)).toEqual(row);
      expect(await b.pickers.these(tenant_id, [unique<PickerId>('p'), row.picker_id])).toEqual([row]);
      expect(await a.pickers.open(picker(tenant_id, { chat_id: 'android:chan_99' as ChatId }))).toBe(false);
      expect(await a.pickers.get(tenant_id, unique<PickerId>('p'))).toBeUndefined();
    });

    test('list: open ones, of one turn or of all, oldest first', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const [late, early, other, closed] = [
        picker(tenant_id, { created_at: 20 }),
        picker(tenant_id),
        picker(tenant_id, { turn_id: null, created_at: 15 }),
        picker(tenant_id),
      ];
      for (const row of [late!, early!, other!, closed!]) await a.pickers.open(row);
      await a.pickers.close(tenant_id, closed!.picker_id, { state: 'closed', value: null, answered_by: null });
      expect(await a.pickers.list(tenant_id)).toEqual([early, other, late]);
      expect(await a.pickers.list(tenant_id, 'tn_1' as TurnId)).toEqual([early, late]);
    });

    test('close: one winner of many; the winner’s retry wins again; undefined when unknown', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      for (let round = 0; round < 5; round++) {
        const row = picker(tenant_id);
        await a.pickers.open(row);
        const answer = (n: number) => ({ state: 'answered' as const, value: `v${n}`, answered_by: `k${n}` });
        const results = await Promise.all([0, 1, 2, 3].map((n) => (n % 2 ? a : b).pickers.close(tenant_id, row.picker_id, answer(n))));
        expect(results.filter((result) => result === 'won')).toHaveLength(1);
        const winner = results.indexOf('won');
        expect(await a.pickers.get(tenant_id, row.picker_id)).toEqual({ ...row, ...answer(winner) });
        expect(await b.pickers.close(tenant_id, row.picker_id, { ...answer(winner), value: 'other' })).toBe('won');
        expect(await b.pickers.close(tenant_id, row.picker_id, { state: 'closed', value: null, answered_by: null })).toBe('lost');
        expect((await a.pickers.get(tenant_id, row.picker_id))?.value).toBe(`v${winner}`);
      }
      expect(await a.pickers.close(tenant_id, unique<PickerId>('p'), { state: 'closed', value: null, answered_by: null })).toBeUndefined();
    });

    test('close: by nobody is not won twice; a value may be several', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const [expired, multi] = [picker(tenant_id), picker(tenant_id)];
      for (const row of [expired, multi]) await a.pickers.open(row!);
      const nobody = { state: 'closed' as const, value: null, answered_by: null };
      expect(await a.pickers.close(tenant_id, expired!.picker_id, nobody)).toBe('won');
      expect(await a.pickers.close(tenant_id, expired!.picker_id, nobody)).toBe('lost');
      await a.pickers.close(tenant_id, multi!.picker_id, { state: 'answered', value: ['x', 'y'], answered_by: 'k' });
      expect((await a.pickers.get(tenant_id, multi!.picker_id))?.value).toEqual(['x', 'y']);
    });

    test('expired: open ones whose time has come, of any tenant, at most limit, page by page', async () => {
      const { a } = subject();
      const one = await newTenant(subject());
      const two = await newTenant(subject());
      const rows = [
        picker(one.tenant_id, { expires_at: 5 }),
        picker(two.tenant_id, { expires_at: 3 }),
        picker(one.tenant_id, { expires_at: 6 }),
      ];
      for (const row of [...rows, picker(one.tenant_id)]) await a.pickers.open(row);
      expect(await a.pickers.expired(5, { limit: 10 })).toEqual([rows[1], rows[0]]);
      expect(await a.pickers.expired(5, { limit: 1 })).toEqual([rows[1]]);
      expect(await a.pickers.expired(6, { limit: 2, after: rows[1]! })).toEqual([rows[0], rows[2]]);
      expect(await a.pickers.expired(6, { limit: 2, after: rows[2]! })).toEqual([]);
      for (const row of rows) await a.pickers.close(row.tenant_id, row.picker_id, { state: 'closed', value: null, answered_by: null });
      expect(await a.pickers.expired(9, { limit: 10 })).toEqual([]);
    });
  });
}
