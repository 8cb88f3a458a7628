import { type AgentId, makeToken, type TenantId, type TokenId } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { type TenantRow, tokenHash } from '@iris/store';
import type { Api, Routing } from '../control.js';
import { nameOf } from '../names.js';
import { NewTenant, PageQuery, SomeQuotas, Tenant, TenantCreated, TenantPage, TenantParams, TenantState } from '../schemas.js';
import { look, operators } from './admin-roles.js';

/** `/v1/tenants`: make, look at, limit, suspend. */
export function tenantRoutes(api: Api, { store, clock, random, secret, announcer, quotas: defaults, tenant, audit }: Routing): void {
  const tags = ['tenants'];

  api.post(
    '/v1/tenants',
    { config: operators.change, schema: { tags, summary: 'Make a tenant', body: NewTenant, response: { 201: TenantCreated } } },
    async (request, reply) => {
      const name = nameOf(request.body.name);
      const at = clock.now();
      const tenant_id = randomId(random, 12) as TenantId;
      const agent_id = `ag_${randomId(random, 12)}` as AgentId;
      const device_token = makeToken('device', tenant_id, secret());
      const agent_token = makeToken('agent', tenant_id, secret());
      await store.tenants.create({ tenant_id, name, agent_id, at });
      const token = { tenant_id, device_id: null, created_at: at };
      await store.tokens.create({ ...token, token_id: tokenId(), kind: 'device', hash: tokenHash(device_token), agent_id: null });
      await store.tokens.create({ ...token, token_id: tokenId(), kind: 'agent', hash: tokenHash(agent_token), agent_id });
      await audit(request, tenant_id, 'tenant.create', tenant_id);
      return reply.code(201).send({ tenant_id, device_token, agent_token, agent_id });
    },
  );

  api.get(
    '/v1/tenants',
    {
      config: look,
      schema: {
        tags,
        summary: 'Tenants, by id; of a tenant’s administrator, their own',
        querystring: PageQuery,
        response: { 200: TenantPage },
      },
    },
    async (request) => {
      const { after, limit } = request.query;
      const { tenant_id } = request.actor;
      if (tenant_id !== null) return { tenants: after === undefined || after < tenant_id ? [shown(await tenant(request, tenant_id))] : [] };
      const page = { limit: limit === undefined ? 100 : Number(limit), ...(after === undefined ? {} : { after: after as TenantId }) };
      return { tenants: (await store.tenants.list(page)).map(shown) };
    },
  );

  api.get(
    '/v1/tenants/:tenant_id',
    { config: look, schema: { tags, summary: 'One tenant', params: TenantParams, response: { 200: Tenant } } },
    async (request) => shown(await tenant(request, request.params.tenant_id)),
  );

  api.patch(
    '/v1/tenants/:tenant_id',
    {
      config: operators.change,
      schema: {
        tags,
        summary: 'Suspend a tenant, which closes everything it has open and opens nothing, or let it go on',
        params: TenantParams,
        body: TenantState,
        response: { 200: Tenant },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const { state } = request.body;
      const row = await store.tenants.setState(tenant_id, state);
      await audit(request, tenant_id, `tenant.${state}`, tenant_id);
      await announcer.announce({ kind: 'changed', tenant_id, what: 'tenant' });
      if (state === 'suspended') await announcer.announce({ kind: 'revoked', tenant_id });
      return shown(row ?? (await tenant(request, tenant_id)));
    },
  );

  api.patch(
    '/v1/tenants/:tenant_id/quotas',
    {
      config: operators.change,
      schema: {
        tags,
        summary: 'Change what a tenant may use; what is not named stays',
        params: TenantParams,
        body: SomeQuotas,
        response: { 200: Tenant },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const row = await store.tenants.setQuotas(tenant_id, request.body);
      await audit(request, tenant_id, 'quotas.set', Object.keys(request.body).sort().join(','));
      await announcer.announce({ kind: 'changed', tenant_id, what: 'tenant' });
      return shown(row ?? (await tenant(request, tenant_id)));
    },
  );

  const shown = ({ tenant_id, name, state, quotas, created_at }: TenantRow) => ({
    tenant_id,
    name,
    state,
    quotas: { ...defaults, ...quotas },
    created_at,
  });
  const tokenId = () => `tk_${randomId(random, 12)}` as TokenId;
}
