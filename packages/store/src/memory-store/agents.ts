import type { AgentId, TenantId } from '@iris/protocol';
import { copy } from '../copy.js';
import type { AgentRow } from '../rows.js';
import type { Agents } from '../store.js';
import type { AgentState, MemoryState } from './state.js';

export function newAgent({ at, ...row }: Parameters<Agents['create']>[0]): AgentState {
  const link = { install_id: null, boot_id: null, epoch: 0, link_edge_id: null, link_connection_id: null, link_seen_at: null };
  return { row: { ...row, ...link, in_seq: 0, out_seq: 0, caps: {}, commands: [], created_at: at }, frames: [], keys: new Map() };
}

export function memoryAgents(state: MemoryState): Agents {
  const find = (tenant_id: TenantId, agent_id: AgentId): AgentState | undefined => state.tenants.get(tenant_id)?.agents.get(agent_id);
  return {
    async create(row) {
      const tenant = state.tenants.get(row.tenant_id);
      if (!tenant) throw new Error(`no tenant ${row.tenant_id}`);
      if (tenant.agents.has(row.agent_id)) throw new Error(`agent ${row.agent_id} exists`);
      if (row.is_default) for (const agent of tenant.agents.values()) agent.row = { ...agent.row, is_default: false };
      tenant.agents.set(row.agent_id, newAgent(row));
    },
    get: async (tenant_id, agent_id) => copy(find(tenant_id, agent_id)?.row),
    list: async (tenant_id) =>
      [...(state.tenants.get(tenant_id)?.agents.values() ?? [])].map(({ row }) => copy(row)).sort((a, b) => a.created_at - b.created_at),
    async change(tenant_id, agent_id, { name, is_default }) {
      const agent = find(tenant_id, agent_id);
      if (!agent) return undefined;
      if (is_default)
        for (const other of state.tenants.get(tenant_id)!.agents.values()) other.row = { ...other.row, is_default: other === agent };
      if (name !== undefined) agent.row = { ...agent.row, name };
      return copy(agent.row);
    },
    async remove(tenant_id, agent_id, at) {
      const tenant = state.tenants.get(tenant_id);
      const agent = find(tenant_id, agent_id);
      if (!tenant || !agent) return undefined;
      if (agent.row.is_default) return 'default';
      for (const [key, row] of tenant.channels) if (row.agent_id === agent_id) tenant.channels.set(key, { ...row, agent_id: null });
      const tokens = [...tenant.tokens.values()].filter((token) => token.agent_id === agent_id);
      for (const token of tokens) tenant.tokens.set(token.token_id, { ...token, revoked_at: token.revoked_at ?? at });
      tenant.agents.delete(agent_id);
      tenant.backends.delete(agent_id);
      return { token_ids: tokens.map(({ token_id }) => token_id) };
    },
    async attach(tenant_id, { agent_id, install_id, boot_id, edge_id, connection_id, caps, at }) {
      const agent = find(tenant_id, agent_id);
      if (!agent) return undefined;
      const previous = agent.row;
      const link = { install_id, boot_id, link_edge_id: edge_id, link_connection_id: connection_id, link_seen_at: at, caps: copy(caps) };
      const row: AgentRow = { ...previous, ...link, epoch: previous.epoch + 1 };
      if (previous.install_id === install_id) agent.row = row;
      else {
        agent.frames = agent.frames.map(({ row: frame, key }, index) => ({ row: { ...frame, seq: index + 1 }, key }));
        agent.row = { ...row, in_seq: 0, out_seq: agent.frames.length };
      }
      return { row: copy(agent.row), previous: copy(previous) };
    },
    async detach(tenant_id, agent_id, epoch, at) {
      const agent = find(tenant_id, agent_id);
      if (!agent || agent.row.epoch !== epoch || agent.row.link_connection_id === null) return false;
      agent.row = { ...agent.row, link_edge_id: null, link_connection_id: null, link_seen_at: Math.max(agent.row.link_seen_at ?? 0, at) };
      return true;
    },
    async seen(links, at) {
      for (const { tenant_id, agent_id, epoch } of links) {
        const agent = find(tenant_id, agent_id);
        if (!agent || agent.row.epoch !== epoch || agent.row.link_connection_id === null) continue;
        agent.row = { ...agent.row, link_seen_at: Math.max(agent.row.link_seen_at ?? 0, at) };
      }
    },
    async processed(tenant_id, agent_id, install_id, seq) {
      const agent = find(tenant_id, agent_id);
      if (agent?.row.install_id === install_id) agent.row = { ...agent.row, in_seq: Math.max(agent.row.in_seq, seq) };
    },
    async setCommands(tenant_id, agent_id, commands) {
      const agent = find(tenant_id, agent_id);
      if (agent) agent.row = { ...agent.row, commands: copy(commands) };
    },
  };
}
