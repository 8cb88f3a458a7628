import type { Lane, MessageId } from '@iris/protocol';
import type { Receipts } from '../store.js';
import { foreignKeyViolation, sqlState } from './connections.js';
import type { Database } from './database.js';
import { rowOf, threadKey } from './mapping.js';

const owe = `
INSERT INTO receipt (tenant_id, device_id, chat_id, thread_id, message_id) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`;
const take = `
WITH taken AS (DELETE FROM receipt WHERE tenant_id = $1 AND device_id = $2 RETURNING chat_id, thread_id, message_id, seq)
SELECT chat_id, thread_id, message_id FROM taken ORDER BY seq`;

export function prismaReceipts({ sql }: Database): Receipts {
  return {
    async owe(row) {
      try {
        await sql.rows(owe, [row.tenant_id, row.device_id, row.chat_id, threadKey(row), row.message_id]);
      } catch (error) {
        // The lane is gone, and its receipts with it.
        if (sqlState(error) !== foreignKeyViolation) throw error;
      }
    },
    take: async (tenant_id, device_id) => (await sql.rows(take, [tenant_id, device_id])).map(rowOf<Lane & { message_id: MessageId }>),
  };
}
