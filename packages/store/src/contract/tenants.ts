import type { AgentId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { fill, flat, message, newLane, newTenant, newTurn, type Subject, unique } from './clients.js';

export function tenants(subject: Subject): void {
  describe('tenants', () => {
    test('create: with one default channel and one default agent; a second time it rejects and changes nothing', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      expect(await b.tenants.get(tenant_id)).toEqual({
        tenant_id,
        name: 'Test',
        state: 'active',
        quotas: {},
        cursor_reserved: 0,
        created_at: 1_000,
      });
      expect(await b.channels.list(tenant_id)).toEqual([
        { ...flat, tenant_id, kind: 'default', name: 'Default', is_default: true, auto: false, agent_id: null, created_at: 1_000 },
      ]);
      const [agent, ...others] = await b.agents.list(tenant_id);
      expect(others).toEqual([]);
      expect(agent).toMatchObject({ agent_id, name: 'Default', is_default: true, epoch: 0, in_seq: 0, out_seq: 0, link_seen_at: null });
      await expect(a.tenants.create({ tenant_id, name: 'Again', agent_id: 'other' as AgentId, at: 2 })).rejects.toThrow();
      expect((await a.tenants.get(tenant_id))?.name).toBe('Test');
      expect(await a.agents.list(tenant_id)).toHaveLength(1);
    });

    test('list: by id, after an id, at most limit', async () => {
      const { a } = subject();
      const prefix = unique('zz');
      const ids = ['b', 'C', 'a', 'ä'].map((letter) => `${prefix}${letter}` as TenantId);
      for (const tenant_id of ids) await a.tenants.create({ tenant_id, name: tenant_id, agent_id: 'ag' as AgentId, at: 1 });
      const sorted = [...ids].sort();
      const first = await a.tenants.list({ after: prefix as TenantId, limit: 3 });
      expect(first.map((row) => row.tenant_id)).toEqual(sorted.slice(0, 3));
      const rest = await a.tenants.list({ after: sorted[2]!, limit: 3 });
      expect(rest[0]?.tenant_id).toBe(sorted[3]);
      for (const tenant_id of ids) await a.tenants.remove(tenant_id);
    });

    test('setQuotas: merges; undefined for no such tenant', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      await a.tenants.setQuotas(tenant_id, { devices: 3, channels: 4 });
      const row = await b.tenants.setQuotas(tenant_id, { channels: 9 });
      expect(row?.quotas).toEqual({ devices: 3, channels: 9 });
      expect(await a.tenants.get(tenant_id)).toEqual(row);
      expect(await a.tenants.setQuotas(unique<TenantId>('tn'), { devices: 1 })).toBeUndefined();
    });

    test('reserveCursors: each block is one caller’s alone and above all before it', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const asked = await Promise.all(Array.from({ length: 40 }, (_, n) => (n % 2 ? a : b).tenants.reserveCursors(tenant_id, 1 + (n % 5))));
      const blocks = asked.map((block) => block!).sort((x, y) => x.from - y.from);
      expect(blocks[0]?.from).toBe(0);
      blocks.forEach((block, n) => {
        expect(block.to - block.from).toBeGreaterThan(0);
        if (n > 0) expect(block.from).toBe(blocks[n - 1]!.to);
      });
      const total = asked.reduce((sum, block) => sum + block!.to - block!.from, 0);
      expect((await a.tenants.get(tenant_id))?.cursor_reserved).toBe(total);
      expect(await a.tenants.reserveCursors(unique<TenantId>('tn'), 5)).toBeUndefined();
    });

    test('cursors up to 2^53 - 1 are exact', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const high = Number.MAX_SAFE_INTEGER - 10;
      expect(await a.tenants.reserveCursors(tenant_id, high)).toEqual({ from: 0, to: high });
      expect(await b.tenants.reserveCursors(tenant_id, 10)).toEqual({ from: high, to: Number.MAX_SAFE_INTEGER });
      const [id] = await fill(subject(), tenant_id, [Number.MAX_SAFE_INTEGER]);
      expect((await b.messages.get(tenant_id, id!))?.cursor).toBe(Number.MAX_SAFE_INTEGER);
    });

    test('remove: with everything that is the tenant’s, of nobody else’s anything, but the audit', async () => {
      const { a, b } = subject();
      const gone = await newTenant(subject());
      const other = await newTenant(subject());
      await newLane(subject(), gone.tenant_id);
      const row = message(gone.tenant_id);
      const turn = newTurn(row);
      await a.messages.insert([{ message: row, turn }]);
      const [kept] = await fill(subject(), other.tenant_id, [1]);
      await a.audit.write({ tenant_id: gone.tenant_id, at: 1, actor: 'op', action: 'tenant.remove', subject: gone.tenant_id });
      expect(await b.tenants.remove(gone.tenant_id)).toBe(true);
      expect(await b.tenants.remove(gone.tenant_id)).toBe(false);
      expect(await a.tenants.get(gone.tenant_id)).toBeUndefined();
      expect(await a.channels.list(gone.tenant_id)).toEqual([]);
      expect(await a.agents.list(gone.tenant_id)).toEqual([]);
      expect(await a.messages.get(gone.tenant_id, row.message_id)).toBeUndefined();
      expect(await a.turns.get(gone.tenant_id, turn.turn_id)).toBeUndefined();
      expect(await a.messages.get(other.tenant_id, kept!)).toBeDefined();
      expect(await a.audit.list(gone.tenant_id, 10)).toHaveLength(1);
    });

    test('setState: suspended and back; unknown is undefined', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      expect(await a.tenants.setState(tenant_id, 'suspended')).toMatchObject({ tenant_id, state: 'suspended' });
      expect((await b.tenants.get(tenant_id))?.state).toBe('suspended');
      expect(await b.tenants.setState(tenant_id, 'active')).toMatchObject({ state: 'active' });
      expect(await a.tenants.setState(unique<TenantId>('tn'), 'active')).toBeUndefined();
    });

    test('usage: messages, turns and files of each day, of this tenant', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const at = (day: string) => Date.parse(`${day}T23:59:59.999Z`);
      const rows = [
        message(tenant_id, { ts: at('2026-03-01') }),
        message(tenant_id, { ts: at('2026-03-02') }),
        message(tenant_id, { ts: at('2026-03-02'), role: 'assistant' }),
        message(tenant_id, { ts: at('2026-03-03') }),
        message(other.tenant_id, { ts: at('2026-03-02') }),
      ];
      await a.messages.insert(rows.map((row) => ({ message: row })));
      const none = { turns: 0, media_files: 0, media_bytes: 0 };
      expect(await b.usage.days(tenant_id, '2026-03-01', '2026-03-02')).toEqual([
        { day: '2026-03-01', user_messages: 1, agent_messages: 0, ...none },
        { day: '2026-03-02', user_messages: 1, agent_messages: 1, ...none },
      ]);
      expect(await b.usage.days(tenant_id, '2026-04-01', '2026-04-02')).toEqual([]);
    });

    test('usage: what was accepted stays counted, whether it was deleted by itself or went with its lane; once, and not beyond its tenant', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const at = Date.parse('2026-03-02T12:00:00Z');
      const rows = Array.from({ length: 6 }, (_, n) => message(tenant_id, { ts: at, role: n < 4 ? 'user' : 'assistant' }));
      const turns = rows.slice(0, 2).map((row) => newTurn(row, { created_at: at }));
      await a.messages.insert(rows.map((row, n) => ({ message: row, ...(turns[n] === undefined ? {} : { turn: turns[n] }) })));
      const counted = [{ day: '2026-03-02', user_messages: 4, agent_messages: 2, turns: 2, media_files: 0, media_bytes: 0 }];
      const days = () => b.usage.days(tenant_id, '2026-03-01', '2026-03-03');
      expect(await days()).toEqual(counted);
      const ids = [rows[0]!.message_id, rows[4]!.message_id];
      await a.messages.remove(tenant_id, flat, ids, at + 1);
      await b.messages.remove(tenant_id, flat, ids, at + 2);
      expect(await days()).toEqual(counted);
      await Promise.all([a, b].map((each) => each.messages.remove(tenant_id, flat, [rows[1]!.message_id], at + 3)));
      expect(await days()).toEqual(counted);
      const own = await newLane(subject(), tenant_id);
      await a.messages.insert([{ message: message(tenant_id, { ...own, ts: at }) }]);
      const more = [{ ...counted[0]!, user_messages: 5 }];
      expect(await days()).toEqual(more);
      await a.channels.remove(tenant_id, own);
      expect(await days()).toEqual(more);
      await a.tenants.remove(tenant_id);
      expect(await days()).toEqual([]);
    });

    test('audit: newest first, at most limit, each tenant its own', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const rows = [1, 2, 3].map((at) => ({ tenant_id, at, actor: 'op', action: 'token.revoke', subject: `tk_${at}` }));
      for (const row of rows) await a.audit.write(row);
      await a.audit.write({ ...rows[0]!, tenant_id: null });
      expect(await b.audit.list(tenant_id, 2)).toEqual([rows[2], rows[1]]);
    });

    test('ready: it can be written to now', async () => {
      expect(await subject().a.ready()).toBe(true);
    });

    test('rows are copies: changing one changes nothing in the store', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const runtime = { model: 'x', nested: { deep: [1] } };
      const row = message(tenant_id, { runtime });
      const [inserted] = await a.messages.insert([{ message: row }]);
      runtime.nested.deep.push(2);
      const read = await a.messages.get(tenant_id, row.message_id);
      (read!.runtime as typeof runtime).nested.deep.push(3);
      expect(inserted).not.toBe('no_lane');
      expect((await a.messages.get(tenant_id, row.message_id))?.runtime).toEqual({ model: 'x', nested: { deep: [1] } });
    });
  });
}
