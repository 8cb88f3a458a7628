import { type AgentId, makeToken, notFound, rateLimited, type TokenId } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { type AgentRow, tokenHash } from '@iris/store';
import type { Api, Routing } from '../control.js';
import { nameOf } from '../names.js';
import { Agent, AgentChange, AgentCreated, AgentList, AgentParams, NewAgent, TenantParams } from '../schemas.js';
import { change, look } from './admin-roles.js';

/** `/v1/tenants/{tenant_id}/agents`: who answers in the tenant's channels. */
export function agentRoutes(api: Api, { store, clock, random, secret, announcer, quotas, tenant, audit }: Routing): void {
  const tags = ['agents'];

  api.get(
    '/v1/tenants/:tenant_id/agents',
    {
      config: look,
      schema: { tags, summary: 'Agents, and whether their links are there', params: TenantParams, response: { 200: AgentList } },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      return { agents: (await store.agents.list(tenant_id)).map(shown) };
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
      await audit(request, tenant_id, 'agent.create', agent_id);
      await announcer.announce({ kind: 'changed', tenant_id, what: 'agents' });
      return reply.code(201).send({ agent_id, agent_token, token_id });
    },
  );

  api.patch(
    '/v1/tenants/:tenant_id/agents/:agent_id',
    {
      config: change,
      schema: {
        tags,
        summary: 'Rename an agent, or make it the default',
        params: AgentParams,
        body: AgentChange,
        response: { 200: Agent },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { name, is_default } = request.body;
      const agent_id = request.params.agent_id as AgentId;
      const row = await store.agents.change(tenant_id, agent_id, {
        ...(name === undefined ? {} : { name: nameOf(name) }),
        ...(is_default === undefined ? {} : { is_default }),
      });
      if (row === undefined) throw notFound('agent');
      await audit(request, tenant_id, 'agent.change', agent_id);
      await announcer.announce({ kind: 'changed', tenant_id, what: 'agents' });
      return shown(row);
    },
  );

  const shown = ({ agent_id, name, is_default, install_id, caps, commands, created_at, link_seen_at, link_connection_id }: AgentRow) => ({
    agent_id,
    name,
    is_default,
    install_id,
    linked: link_connection_id !== null,
    link_seen_at,
    caps,
    commands: commands.length,
    created_at,
  });
}
