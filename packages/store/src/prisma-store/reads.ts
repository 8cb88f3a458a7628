import type { ReadStateRow } from '../rows.js';
import type { Reads } from '../store.js';
import { foreignKeyViolation, sqlState } from './connections.js';
import type { Database } from './database.js';
import { rowOf, threadKey } from './mapping.js';

const advance = `
INSERT INTO read_state AS r (tenant_id, device_id, chat_id, thread_id, message_id, cursor) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant_id, device_id, chat_id, thread_id) DO UPDATE SET message_id = excluded.message_id, cursor = excluded.cursor
WHERE r.cursor <= excluded.cursor RETURNING 1`;

export function prismaReads({ prisma, sql }: Database): Reads {
  return {
    async advance(row) {
      const { tenant_id, device_id, chat_id, message_id, cursor } = row;
      try {
        return (await sql.rows(advance, [tenant_id, device_id, chat_id, threadKey(row), message_id, cursor])).length > 0;
      } catch (error) {
        if (sqlState(error) === foreignKeyViolation) return false;
        throw error;
      }
    },
    list: async (tenant_id) => (await prisma.readState.findMany({ where: { tenant_id } })).map(rowOf<ReadStateRow>),
  };
}
