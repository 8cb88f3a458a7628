import { type AgentId, type DeviceId, makeToken, notFound, type TokenId, unsupported } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { tokenHash } from '@iris/store';
import type { Api, Routing } from '../control.js';
import { NewToken, TenantParams, TokenCreated, TokenList, TokenParams } from '../schemas.js';

/** `/v1/tenants/{tenant_id}/tokens`: what opens a tenant, for devices and for agents. */
export function tokenRoutes(api: Api, { store, clock, random, secret, announcer, tenant, audit }: Routing): void {
  const tags = ['tokens'];

  api.post(
    '/v1/tenants/:tenant_id/tokens',
    { schema: { tags, summary: 'Make a token', params: TenantParams, body: NewToken, response: { 201: TokenCreated } } },
    async (request, reply) => {
      const { tenant_id } = await tenant(request.params.tenant_id);
      const { kind, device_id } = request.body;
      if (kind === 'agent' && device_id !== undefined) throw unsupported('device_id: only for kind device');
      if (kind === 'device' && request.body.agent_id !== undefined) throw unsupported('agent_id: only for kind agent');
      const agent_id = kind === 'agent' ? await agentOf(request.body.agent_id as AgentId | undefined) : null;
      const token_id = `tk_${randomId(random, 12)}` as TokenId;
      const token = makeToken(kind, tenant_id, secret());
      await store.tokens.create({
        tenant_id,
        token_id,
        kind,
        hash: tokenHash(token),
        device_id: (device_id as DeviceId | undefined) ?? null,
        agent_id,
        created_at: clock.now(),
      });
      await audit(tenant_id, 'token.create', token_id);
      return reply.code(201).send({ token_id, token });

      async function agentOf(wanted: AgentId | undefined): Promise<AgentId> {
        const agents = await store.agents.list(tenant_id);
        const agent = agents.find((one) => (wanted === undefined ? one.is_default : one.agent_id === wanted));
        if (agent === undefined) throw notFound('agent');
        return agent.agent_id;
      }
    },
  );

  api.get(
    '/v1/tenants/:tenant_id/tokens',
    { schema: { tags, summary: 'Tokens; never the secrets', params: TenantParams, response: { 200: TokenList } } },
    async (request) => {
      const { tenant_id } = await tenant(request.params.tenant_id);
      const tokens = await store.tokens.list(tenant_id);
      return {
        tokens: tokens.map(({ token_id, kind, device_id, agent_id, created_at, revoked_at }) => ({
          token_id,
          kind,
          device_id,
          agent_id,
          created_at,
          revoked_at,
        })),
      };
    },
  );

  api.delete(
    '/v1/tenants/:tenant_id/tokens/:token_id',
    { schema: { tags, summary: 'Revoke a token and close what it opened', params: TokenParams } },
    async (request, reply) => {
      const { tenant_id } = await tenant(request.params.tenant_id);
      const token_id = request.params.token_id as TokenId;
      if (!(await store.tokens.revoke(tenant_id, token_id, clock.now()))) throw notFound('token');
      await audit(tenant_id, 'token.revoke', token_id);
      // Store first: whoever drops its cache at this word must read the new state.
      await announcer.announce({ kind: 'revoked', tenant_id, token_id });
      return reply.code(204).send();
    },
  );
}
