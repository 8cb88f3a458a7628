import { type AgentId, type DeviceId, makeToken, notFound, type TenantId, type TokenId, unsupported } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { type AdminRole, type TokenRow, tokenHash } from '@iris/store';
import { checkMay } from '../actor.js';
import type { Api, Routing } from '../control.js';
import { NewToken, Rotation, TenantParams, TokenCreated, TokenList, TokenParams } from '../schemas.js';
import { change, look } from './admin-roles.js';

/** How long the old token of a rotation still opens, unless told otherwise. */
const overlap_ms = 24 * 60 * 60 * 1000;

/** `/v1/tenants/{tenant_id}/tokens`: what opens a tenant, for devices, agents and the tenant's own administrators. */
export function tokenRoutes(api: Api, { store, clock, random, secret, announcer, tenant, audit }: Routing): void {
  const tags = ['tokens'];

  /** Rights are given by owners alone, and nobody gives what is not theirs. */
  const checkKind = (request: Parameters<Routing['tenant']>[0], kind: TokenRow['kind']) => {
    if (kind === 'admin') checkMay(request.actor, { role: 'owner' });
  };
  const make = async (tenant_id: TenantId, kind: TokenRow['kind'], row: Partial<TokenRow>) => {
    const token_id = `tk_${randomId(random, 12)}` as TokenId;
    const token = makeToken(kind, tenant_id, secret());
    const { device_id = null, agent_id = null, role = null, label = '', expires_at = null } = row;
    await store.tokens.create({
      tenant_id,
      token_id,
      kind,
      hash: tokenHash(token),
      device_id,
      agent_id,
      role,
      label,
      expires_at,
      created_at: clock.now(),
    });
    return { token_id, token };
  };
  const find = async (tenant_id: TenantId, token_id: string) => {
    const row = (await store.tokens.list(tenant_id)).find((one) => one.token_id === token_id);
    if (row === undefined) throw notFound('token');
    return row;
  };

  api.post(
    '/v1/tenants/:tenant_id/tokens',
    { config: change, schema: { tags, summary: 'Make a token', params: TenantParams, body: NewToken, response: { 201: TokenCreated } } },
    async (request, reply) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { kind, device_id, role, label = '', expires_at = null } = request.body;
      if (kind !== 'device' && device_id !== undefined) throw unsupported('device_id: only for kind device');
      if (kind !== 'agent' && request.body.agent_id !== undefined) throw unsupported('agent_id: only for kind agent');
      if ((kind === 'admin') !== (role !== undefined)) throw unsupported(kind === 'admin' ? 'role: missing' : 'role: only for kind admin');
      checkKind(request, kind);
      const agent_id = kind === 'agent' ? await agentOf(request.body.agent_id as AgentId | undefined) : null;
      const made = await make(tenant_id, kind, {
        device_id: (device_id as DeviceId | undefined) ?? null,
        agent_id,
        role: (role as AdminRole | undefined) ?? null,
        label,
        expires_at,
      });
      await audit(request, tenant_id, 'token.create', made.token_id);
      return reply.code(201).send(made);

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
    { config: look, schema: { tags, summary: 'Tokens; never the secrets', params: TenantParams, response: { 200: TokenList } } },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const tokens = await store.tokens.list(tenant_id);
      return { tokens: tokens.map(({ tenant_id: _, hash: __, ...row }) => row) };
    },
  );

  api.post(
    '/v1/tenants/:tenant_id/tokens/:token_id/rotate',
    {
      config: change,
      schema: {
        tags,
        summary: 'A new token in place of an old one, which goes on opening for a while; what the old one has opened stays open',
        params: TokenParams,
        body: Rotation,
        response: { 201: TokenCreated },
      },
    },
    async (request, reply) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const old = await find(tenant_id, request.params.token_id);
      checkKind(request, old.kind);
      if (old.revoked_at !== null) throw unsupported('token: revoked');
      const made = await make(tenant_id, old.kind, { ...old, expires_at: null });
      await store.tokens.expire(tenant_id, old.token_id, clock.now() + (request.body.overlap_ms ?? overlap_ms));
      await audit(request, tenant_id, 'token.rotate', `${old.token_id} ${made.token_id}`);
      await announcer.announce({ kind: 'changed', tenant_id, what: 'tokens' });
      return reply.code(201).send(made);
    },
  );

  api.delete(
    '/v1/tenants/:tenant_id/tokens/:token_id',
    { config: change, schema: { tags, summary: 'Revoke a token and close what it opened', params: TokenParams } },
    async (request, reply) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { token_id, kind } = await find(tenant_id, request.params.token_id);
      checkKind(request, kind);
      if (!(await store.tokens.revoke(tenant_id, token_id, clock.now()))) throw notFound('token');
      await audit(request, tenant_id, 'token.revoke', token_id);
      // Store first: whoever drops its cache at this word must read the new state.
      await announcer.announce({ kind: 'revoked', tenant_id, token_id });
      return reply.code(204).send();
    },
  );
}
