import type { AuditRow } from '../rows.js';
import type { Audit } from '../store.js';
import { type Database, everywhere } from './database.js';
import { rowOf } from './mapping.js';

export function prismaAudit({ prisma }: Database): Audit {
  return {
    async write({ tenant_id, at, actor, action, subject }) {
      const write = () => prisma.audit.create({ data: { tenant_id, at, actor, action, subject } });
      // What was done to no tenant in particular.
      await (tenant_id === null ? everywhere(write) : write());
    },
    async list(tenant_id, limit) {
      const list = () => prisma.audit.findMany({ where: { tenant_id }, orderBy: { id: 'desc' }, take: limit });
      return (await (tenant_id === null ? everywhere(list) : list())).map(rowOf<AuditRow>);
    },
  };
}
