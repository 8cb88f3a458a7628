import { type AgentId, cleanText, firstCodePoints, limits, makeToken, type TenantId, type TokenId, unsupported } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { type TenantRow, tokenHash } from '@iris/store';
import type { Api, Routing } from '../control.js';
import { NewTenant, PageQuery, SomeQuotas, Tenant, TenantCreated, TenantPage, TenantParams } from '../schemas.js';

/** `/v1/tenants`: make, look at, limit. */
export function tenantRoutes(api: Api, { store, clock, random, secret, announcer, quotas: defaults, tenant, audit }: Routing): void {
  const tags = ['tenants'];

  api.post(
    '/v1/tenants',
    { schema: { tags, summary: 'Make a tenant', body: NewTenant, response: { 201: TenantCreated } } },
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
      await audit(tenant_id, 'tenant.create', tenant_id);
      return reply.code(201).send({ tenant_id, device_token, agent_token, agent_id });
    },
  );

  api.get(
    '/v1/tenants',
    { schema: { tags, summary: 'Tenants, by id', querystring: PageQuery, response: { 200: TenantPage } } },
    async (request) => {
      const { after, limit } = request.query;
      const page = { limit: limit === undefined ? 100 : Number(limit), ...(after === undefined ? {} : { after: after as TenantId }) };
      return { tenants: (await store.tenants.list(page)).map(shown) };
    },
  );

  api.get(
    '/v1/tenants/:tenant_id',
    { schema: { tags, summary: 'One tenant', params: TenantParams, response: { 200: Tenant } } },
    async (request) => shown(await tenant(request.params.tenant_id)),
  );

  api.patch(
    '/v1/tenants/:tenant_id/quotas',
    {
      schema: {
        tags,
        summary: 'Change what a tenant may use; what is not named stays',
        params: TenantParams,
        body: SomeQuotas,
        response: { 200: Tenant },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request.params.tenant_id);
      const row = await store.tenants.setQuotas(tenant_id, request.body);
      await audit(tenant_id, 'quotas.set', Object.keys(request.body).sort().join(','));
      await announcer.announce({ kind: 'changed', tenant_id, what: 'tenant' });
      return shown(row ?? (await tenant(tenant_id)));
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

/** @throws RequestError `unsupported` when nothing is left of it, or it is too long */
function nameOf(given: string): string {
  const name = cleanText(given).trim();
  if (name === '') throw unsupported('name: empty');
  if (firstCodePoints(name, limits.name_code_points) !== name) throw unsupported(`name: more than ${limits.name_code_points} characters`);
  return name;
}
