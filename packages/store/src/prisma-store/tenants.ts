import type { TenantRow } from '../rows.js';
import type { Tenants } from '../store.js';
import { columns } from './columns.js';
import { removal_ms } from './connections.js';
import { type Database, everywhere } from './database.js';
import { json, maybeRowOf, rowOf } from './mapping.js';

/** Foreign keys are looked at when the statement ends, so one statement can make a tenant with what every tenant has. */
const create = `
WITH tenant AS (INSERT INTO tenant (tenant_id, name, created_at) VALUES ($1, $2, $4)),
agent AS (INSERT INTO agent (tenant_id, agent_id, name, is_default, created_at) VALUES ($1, $3, 'Default', true, $4))
INSERT INTO channel (tenant_id, chat_id, kind, name, is_default, auto, number, created_at)
VALUES ($1, 'android:default', 'default', 'Default', true, false, 0, $4)`;

const reserve = `
UPDATE tenant SET cursor_reserved = cursor_reserved + $2 WHERE tenant_id = $1
RETURNING cursor_reserved - $2 AS "from", cursor_reserved AS "to"`;

export function prismaTenants({ prisma, sql }: Database): Tenants {
  return {
    async create({ tenant_id, name, agent_id, at }) {
      await sql.rows(create, [tenant_id, name, agent_id, at]);
    },
    get: async (tenant_id) => maybeRowOf<TenantRow>(await prisma.tenant.findUnique({ where: { tenant_id } })),
    async list({ after, limit }) {
      const where = after === undefined ? {} : { tenant_id: { gt: after } };
      const page = () => prisma.tenant.findMany({ where, orderBy: { tenant_id: 'asc' }, take: limit });
      return (await everywhere(page)).map(rowOf<TenantRow>);
    },
    async setQuotas(tenant_id, quotas) {
      const merge = `UPDATE tenant SET quotas = quotas || $2::jsonb WHERE tenant_id = $1 RETURNING ${columns.tenant.list}`;
      return maybeRowOf<TenantRow>((await sql.rows(merge, [tenant_id, json(quotas)]))[0]);
    },
    async setState(tenant_id, state) {
      const set = `UPDATE tenant SET state = $2 WHERE tenant_id = $1 RETURNING ${columns.tenant.list}`;
      return maybeRowOf<TenantRow>((await sql.rows(set, [tenant_id, state]))[0]);
    },
    reserveCursors: async (tenant_id, count) => (await sql.rows<{ from: number; to: number }>(reserve, [tenant_id, count]))[0],
    async remove(tenant_id) {
      const gone = await sql.transaction((tx) => tx.rows('DELETE FROM tenant WHERE tenant_id = $1 RETURNING 1', [tenant_id]), removal_ms);
      return gone.length > 0;
    },
  };
}
