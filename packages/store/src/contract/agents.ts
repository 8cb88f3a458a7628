import type { AgentId, ConnectionId, EdgeId, InstallId, TenantId, TokenId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { AgentBackendRow } from '../rows.js';
import { newLane, newTenant, queueTurn, type Subject, unique } from './clients.js';

const backend = (
  of: Pick<AgentBackendRow, 'tenant_id' | 'agent_id'>,
  fields: Pick<AgentBackendRow, 'token_id'> & Partial<AgentBackendRow>,
): AgentBackendRow => ({ ...of, kind: 'demo', settings: {}, sealed: 'sealed', has_key: false, changed_at: 8, ...fields });

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

    test('LNK17: remove: tokens are revoked, channels are the default agent’s again, turns stay; the default one cannot be removed', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const other = { tenant_id, agent_id: unique<AgentId>('ag'), name: 'Second', is_default: false, at: 1_001 };
      await a.agents.create(other);
      const [mine, theirs] = [unique<TokenId>('tk'), unique<TokenId>('tk')];
      const token = { tenant_id, kind: 'agent' as const, device_id: null, created_at: 5 };
      await a.tokens.create({ ...token, token_id: mine, hash: unique('h'), agent_id: other.agent_id });
      await a.tokens.create({ ...token, token_id: theirs, hash: unique('h'), agent_id });
      const lane = await newLane(subject(), tenant_id);
      await a.channels.bind(tenant_id, lane.chat_id, other.agent_id);
      const { turn_id } = await queueTurn(subject(), tenant_id, {}, lane);
      await a.turns.startNext(tenant_id, lane, { agent_id: other.agent_id, max_running: 9 });
      await a.agentFrames.append(tenant_id, other.agent_id, [{ frame: { type: 'turn.start' } }]);
      await a.agentBackends.set(backend({ tenant_id, agent_id: other.agent_id }, { token_id: mine }));
      expect(await b.agents.remove(tenant_id, agent_id, 70)).toBe('default');
      expect(await b.agents.remove(tenant_id, unique<AgentId>('ag'), 70)).toBeUndefined();
      expect(await b.agents.remove(tenant_id, other.agent_id, 70)).toEqual({ token_ids: [mine] });
      expect(await b.agents.remove(tenant_id, other.agent_id, 71)).toBeUndefined();
      expect((await a.agents.list(tenant_id)).map((row) => row.agent_id)).toEqual([agent_id]);
      expect((await a.tokens.list(tenant_id)).map(({ token_id, revoked_at }) => [token_id, revoked_at]).sort()).toEqual(
        [
          [mine, 70],
          [theirs, null],
        ].sort(),
      );
      expect((await a.channels.list(tenant_id)).map((row) => row.agent_id)).toEqual([null, null]);
      expect(await a.agentBackends.list(tenant_id)).toEqual([]);
      expect(await a.agentFrames.after(tenant_id, other.agent_id, 0)).toEqual([]);
      expect(await a.turns.get(tenant_id, turn_id)).toMatchObject({ state: 'sent', agent_id: other.agent_id });
    });

    test('backends: one per agent, listed by tenant; those run whose tenant is active and whose token opens it, of all tenants, in pages', async () => {
      const { a, b } = subject();
      const [one, two] = [await newTenant(subject()), await newTenant(subject())];
      const rows: AgentBackendRow[] = [];
      for (const { tenant_id, agent_id } of [one, two]) {
        const token_id = unique<TokenId>('tk');
        await a.tokens.create({ tenant_id, token_id, kind: 'agent', hash: unique('h'), device_id: null, agent_id, created_at: 5 });
        const row = backend({ tenant_id, agent_id }, { token_id });
        expect(await a.agentBackends.set(row)).toBe(true);
        rows.push(row);
      }
      const [first, second] = rows.sort((x, y) => (x.tenant_id < y.tenant_id ? -1 : 1)) as [AgentBackendRow, AgentBackendRow];
      expect(await a.agentBackends.set({ ...first, agent_id: unique<AgentId>('ag') })).toBe(false);
      const changed = { ...first, kind: 'hermes', settings: { url: 'https://hermes.example' }, has_key: true, changed_at: 9 };
      expect(await b.agentBackends.set(changed)).toBe(true);
      expect(await a.agentBackends.list(first.tenant_id)).toEqual([changed]);
      const running = async (now = 10) => {
        const found: AgentBackendRow[] = [];
        for (;;) {
          const after = found.at(-1);
          const page = await b.agentBackends.running({ limit: 1, now, ...(after === undefined ? {} : { after }) });
          if (page.length === 0) return found.filter(({ tenant_id }) => tenant_id === first.tenant_id || tenant_id === second.tenant_id);
          found.push(...page);
        }
      };
      expect(await running()).toEqual([changed, second]);
      await a.tenants.setState(first.tenant_id, 'suspended');
      expect(await running()).toEqual([second]);
      await a.tenants.setState(first.tenant_id, 'active');
      await a.tokens.expire(first.tenant_id, first.token_id, 20);
      expect(await running(19)).toEqual([changed, second]);
      expect(await running(20)).toEqual([second]);
      await a.tokens.revoke(second.tenant_id, second.token_id, 11);
      expect(await running()).toEqual([changed]);
      expect(await b.agentBackends.remove(first.tenant_id, first.agent_id)).toBe(true);
      expect(await b.agentBackends.remove(first.tenant_id, first.agent_id)).toBe(false);
      expect(await running()).toEqual([]);
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
