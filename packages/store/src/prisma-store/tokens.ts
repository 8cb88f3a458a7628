import type { TokenRow } from '../rows.js';
import type { Tokens } from '../store.js';
import type { Database } from './database.js';
import { maybeRowOf, rowOf } from './mapping.js';

export function prismaTokens({ prisma, sql }: Database): Tokens {
  return {
    async create({ tenant_id, token_id, kind, hash, device_id, agent_id, created_at, role = null, label = '', expires_at = null }) {
      await prisma.token.create({ data: { tenant_id, token_id, kind, hash, device_id, agent_id, created_at, role, label, expires_at } });
    },
    find: async (tenant_id, hash) =>
      maybeRowOf<TokenRow>(await prisma.token.findUnique({ where: { tenant_id_hash: { tenant_id, hash } } })),
    get: async (tenant_id, token_id) => maybeRowOf<TokenRow>(await prisma.token.findFirst({ where: { tenant_id, token_id } })),
    async list(tenant_id) {
      const orderBy = [{ created_at: 'asc' }, { token_id: 'asc' }] as const;
      return (await prisma.token.findMany({ where: { tenant_id }, orderBy: [...orderBy] })).map(rowOf<TokenRow>);
    },
    async revoke(tenant_id, token_id, at) {
      const revoke = 'UPDATE token SET revoked_at = coalesce(revoked_at, $3) WHERE tenant_id = $1 AND token_id = $2 RETURNING 1';
      return (await sql.rows(revoke, [tenant_id, token_id, at])).length > 0;
    },
    async expire(tenant_id, token_id, at) {
      const expire = 'UPDATE token SET expires_at = least(expires_at, $3) WHERE tenant_id = $1 AND token_id = $2 RETURNING 1';
      return (await sql.rows(expire, [tenant_id, token_id, at])).length > 0;
    },
  };
}
