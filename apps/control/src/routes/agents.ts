import { type AgentId, makeToken, notFound, rateLimited, type TenantId, type TokenId, unsupported } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { type AgentBackendRow, type AgentRow, tokenHash } from '@iris/store';
import { Agent, AgentChange, AgentCreated, AgentList, AgentParams, NewAgent } from '../agent-schemas.js';
import { shownBackend } from '../backends.js';
import type { Api, Routing } from '../control.js';
import { nameOf } from '../names.js';
import { TenantParams } from '../schemas.js';
import { change, look } from './admin-roles.js';

/** `/v1/tenants/{tenant_id}/agents`: who answers in the tenant's channels. */
export function agentRoutes(api: Api, { store, clock, random, secret, announcer, backends, quotas, tenant, audit }: Routing): void {
  const tags = ['agents'];

  api.get(
    '/v1/tenants/:tenant_id/agents',
    {
      config: look,
      schema: { tags, summary: 'Agents, and whether their links are there', params: TenantParams, response: { 200: AgentList } },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const [agents, standing] = await Promise.all([store.agents.list(tenant_id), store.agentBackends.list(tenant_id)]);
      return { agents: agents.map((row) => shown(row, standing)) };
    },
  );

  api.post(
    '/v1/tenants/:tenant_id/agents',
    {
      config: change,
      schema: { tags, summary: 'Make an agent with its token', params: TenantParams, body: NewAgent, response: { 201: AgentCreated } },
    },
    async (request, reply) => {
      const row = await tenant(request, request.params.tenant_id);
      const { tenant_id } = row;
      const name = nameOf(request.body.name);
      if ((await store.agents.list(tenant_id)).length >= { ...quotas, ...row.quotas }.agents) throw rateLimited('no more agents', 60_000);
      if (request.body.backend !== undefined) backends.check(request.body.backend);
      const agent_id = `ag_${randomId(random, 12)}` as AgentId;
      const token_id = `tk_${randomId(random, 12)}` as TokenId;
      const agent_token = makeToken('agent', tenant_id, secret());
      const created_at = clock.now();
      await store.agents.create({ tenant_id, agent_id, name, is_default: request.body.is_default === true, at: created_at });
      await store.tokens.create({
        tenant_id,
        token_id,
        kind: 'agent',
        hash: tokenHash(agent_token),
        device_id: null,
        agent_id,
        created_at,
      });
      if (request.body.backend !== undefined) await backends.set(tenant_id, agent_id, request.body.backend);
      await audit(request, tenant_id, 'agent.create', agent_id);
      await announcer.announce({ kind: 'rerouted', tenant_id });
      return reply.code(201).send({ agent_id, agent_token, token_id });
    },
  );

  api.patch(
    '/v1/tenants/:tenant_id/agents/:agent_id',
    {
      config: change,
      schema: {
        tags,
        summary: 'Rename an agent, make it the default, or say what the gateway’s own runner answers with',
        params: AgentParams,
        body: AgentChange,
        response: { 200: Agent },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { name, is_default, backend } = request.body;
      const agent_id = request.params.agent_id as AgentId;
      if (backend !== undefined && backend !== null) backends.check(backend);
      const row = await store.agents.change(tenant_id, agent_id, {
        ...(name === undefined ? {} : { name: nameOf(name) }),
        ...(is_default === undefined ? {} : { is_default }),
      });
      if (row === undefined) throw notFound('agent');
      if (backend === null) await detached(tenant_id, await backends.remove(tenant_id, agent_id));
      else if (backend !== undefined) {
        const set = await backends.set(tenant_id, agent_id, backend);
        if (set === undefined) throw notFound('agent');
        await detached(tenant_id, set.revoked);
      }
      await audit(request, tenant_id, 'agent.change', agent_id);
      await announcer.announce({ kind: 'rerouted', tenant_id });
      return shown(row, await store.agentBackends.list(tenant_id));
    },
  );

  api.delete(
    '/v1/tenants/:tenant_id/agents/:agent_id',
    {
      config: change,
      schema: {
        tags,
        summary:
          'Remove an agent: its link is closed, its tokens open nothing, its channels are the default agent’s; never the default one',
        params: AgentParams,
      },
    },
    async (request, reply) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const agent_id = request.params.agent_id as AgentId;
      const removed = await store.agents.remove(tenant_id, agent_id, clock.now());
      if (removed === undefined) throw notFound('agent');
      if (removed === 'default') throw unsupported('agent: it is the default one; make another the default first');
      await audit(request, tenant_id, 'agent.remove', agent_id);
      // Store first: whoever drops its cache at this word must read the new state.
      for (const token_id of removed.token_ids) await detached(tenant_id, { token_id });
      await announcer.announce({ kind: 'rerouted', tenant_id });
      return reply.code(204).send();
    },
  );

  async function detached(tenant_id: TenantId, token: { token_id: TokenId } | undefined): Promise<void> {
    if (token !== undefined) await announcer.announce({ kind: 'revoked', tenant_id, token_id: token.token_id });
  }

  const shown = (
    { agent_id, name, is_default, install_id, caps, commands, created_at, link_seen_at, link_connection_id }: AgentRow,
    standing: readonly AgentBackendRow[],
  ) => ({
    agent_id,
    name,
    is_default,
    install_id,
    linked: link_connection_id !== null,
    link_seen_at,
    caps,
    commands: commands.length,
    backend: shownBackend(standing.find((row) => row.agent_id === agent_id)),
    created_at,
  });
}
