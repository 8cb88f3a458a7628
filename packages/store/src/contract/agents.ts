import type { AgentId, ConnectionId, EdgeId, InstallId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { newTenant, type Subject, unique } from './clients.js';

const link = (agent_id: AgentId, fields: Record<string, unknown> = {}) => ({
  agent_id,
  install_id: 'install_1' as InstallId,
  boot_id: 'boot_1',
  edge_id: 'edge_1' as EdgeId,
  connection_id: 'c_1' as ConnectionId,
  caps: { stream: true } as Record<string, unknown>,
  at: 100,
  ...fields,
});

export function agents(subject: Subject): void {
  describe('agents', () => {
    test('create: a new default takes the place of the old; rejects a second of the same id, and an unknown tenant', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const second = { tenant_id, agent_id: unique<AgentId>('ag'), name: 'Second', is_default: true, at: 1_001 };
      await a.agents.create(second);
      await a.agents.create({ ...second, agent_id: unique<AgentId>('ag'), name: 'Third', is_default: false, at: 1_002 });
      expect((await b.agents.list(tenant_id)).map((row) => [row.name, row.is_default])).toEqual([
        ['Default', false],
        ['Second', true],
        ['Third', false],
      ]);
      await expect(a.agents.create(second)).rejects.toThrow();
      expect((await a.agents.get(tenant_id, second.agent_id))?.is_default).toBe(true);
      await expect(a.agents.create({ ...second, tenant_id: unique<TenantId>('tn') })).rejects.toThrow();
      expect(await a.agents.get(tenant_id, unique<AgentId>('ag'))).toBeUndefined();
      expect(agent_id).not.toBe(second.agent_id);
    });

    test('change: the name, or who is the default: one, before and after', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const second = { tenant_id, agent_id: unique<AgentId>('ag'), name: 'Second', is_default: false, at: 1_001 };
      await a.agents.create(second);
      expect(await a.agents.change(tenant_id, second.agent_id, { is_default: true })).toMatchObject({ name: 'Second', is_default: true });
      expect(await b.agents.change(tenant_id, agent_id, { name: 'First' })).toMatchObject({ name: 'First', is_default: false });
      expect((await b.agents.list(tenant_id)).map((row) => [row.name, row.is_default])).toEqual([
        ['First', false],
        ['Second', true],
      ]);
      expect(await a.agents.change(tenant_id, second.agent_id, { is_default: true })).toMatchObject({ is_default: true });
      const other = await newTenant(subject());
      expect(await a.agents.change(other.tenant_id, second.agent_id, { name: 'x' })).toBeUndefined();
    });

    test('attach: the next epoch each time, with the row before', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const first = await a.agents.attach(tenant_id, link(agent_id));
      expect(first?.previous).toMatchObject({ epoch: 0, install_id: null, link_seen_at: null });
      expect(first?.row).toMatchObject({
        epoch: 1,
        install_id: 'install_1',
        boot_id: 'boot_1',
        link_edge_id: 'edge_1',
        link_connection_id: 'c_1',
        link_seen_at: 100,
        caps: { stream: true },
      });
      const second = await b.agents.attach(
        tenant_id,
        link(agent_id, { boot_id: 'boot_2', edge_id: 'edge_2', connection_id: 'c_2', at: 200 }),
      );
      expect(second?.previous).toEqual(first?.row);
      expect(second?.row).toMatchObject({
        epoch: 2,
        boot_id: 'boot_2',
        link_edge_id: 'edge_2',
        link_connection_id: 'c_2',
        link_seen_at: 200,
      });
      expect(await a.agents.get(tenant_id, agent_id)).toEqual(second?.row);
      expect(await a.agents.attach(tenant_id, link(unique<AgentId>('ag')))).toBeUndefined();
    });

    test('attach: links at once get epochs of their own', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const attached = await Promise.all(Array.from({ length: 10 }, (_, n) => (n % 2 ? a : b).agents.attach(tenant_id, link(agent_id))));
      expect(attached.map((one) => one!.row.epoch).sort((x, y) => x - y)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });

    test('processed: rises only, for this install only; a new install starts at 0', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      await a.agents.attach(tenant_id, link(agent_id));
      await a.agents.processed(tenant_id, agent_id, 'install_1' as InstallId, 5);
      await b.agents.processed(tenant_id, agent_id, 'install_1' as InstallId, 3);
      await b.agents.processed(tenant_id, agent_id, 'install_0' as InstallId, 9);
      expect((await a.agents.get(tenant_id, agent_id))?.in_seq).toBe(5);
      expect((await a.agents.attach(tenant_id, link(agent_id, { boot_id: 'boot_2' })))?.row.in_seq).toBe(5);
      expect((await a.agents.attach(tenant_id, link(agent_id, { install_id: 'install_2' })))?.row.in_seq).toBe(0);
    });

    test('detach and seen: only of the current epoch, and not once it is gone', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      await a.agents.attach(tenant_id, link(agent_id));
      await a.agents.attach(tenant_id, link(agent_id, { connection_id: 'c_2', at: 200 }));
      expect(await b.agents.detach(tenant_id, agent_id, 1, 210)).toBe(false);
      await b.agents.seen([{ tenant_id, agent_id, epoch: 1 }], 220);
      expect(await a.agents.get(tenant_id, agent_id)).toMatchObject({ link_connection_id: 'c_2', link_seen_at: 200 });
      await b.agents.seen([{ tenant_id, agent_id, epoch: 2 }], 230);
      await b.agents.seen([{ tenant_id, agent_id, epoch: 2 }], 225);
      await b.agents.seen([], 999);
      expect((await a.agents.get(tenant_id, agent_id))?.link_seen_at).toBe(230);
      expect(await b.agents.detach(tenant_id, agent_id, 2, 240)).toBe(true);
      expect(await a.agents.get(tenant_id, agent_id)).toMatchObject({
        link_edge_id: null,
        link_connection_id: null,
        link_seen_at: 240,
        epoch: 2,
      });
      await b.agents.seen([{ tenant_id, agent_id, epoch: 2 }], 250);
      expect(await b.agents.detach(tenant_id, agent_id, 2, 260)).toBe(false);
      expect((await a.agents.get(tenant_id, agent_id))?.link_seen_at).toBe(240);
    });

    test('setCommands: kept as given', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      await a.agents.setCommands(tenant_id, agent_id, [{ name: '/new', aliases: ['/reset'] }]);
      expect((await b.agents.get(tenant_id, agent_id))?.commands).toEqual([{ name: '/new', aliases: ['/reset'] }]);
    });
  });
}

export { link };
