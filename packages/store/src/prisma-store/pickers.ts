import type { PickerRow } from '../rows.js';
import type { Pickers } from '../store.js';
import { columns } from './columns.js';
import { foreignKeyViolation, sqlState } from './connections.js';
import type { Database } from './database.js';
import { json, maybeRowOf, rowOf, threadKey } from './mapping.js';

const all = columns.picker.list;

const open = `
INSERT INTO picker (${all}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (tenant_id, picker_id) DO NOTHING RETURNING 1`;
const close = `
UPDATE picker SET state = $3, value = $4, answered_by = $5 WHERE tenant_id = $1 AND picker_id = $2 AND state = 'open' RETURNING 1`;
const these = `SELECT ${all} FROM picker WHERE tenant_id = $1 AND picker_id = ANY($2)`;
const listOpen = `
SELECT ${all} FROM picker WHERE tenant_id = $1 AND state = 'open' AND ($2::text IS NULL OR turn_id = $2) ORDER BY created_at, picker_id`;
const expired = `
SELECT ${all} FROM picker WHERE state = 'open' AND expires_at <= $1 AND expires_at >= $3 AND (expires_at, tenant_id, picker_id) > ($3::bigint, $4, $5)
ORDER BY expires_at, tenant_id, picker_id LIMIT $2`;

export function prismaPickers({ prisma, sql }: Database): Pickers {
  const get = async (tenant_id: string, picker_id: string) =>
    maybeRowOf<PickerRow>(await prisma.picker.findUnique({ where: { tenant_id_picker_id: { tenant_id, picker_id } } }));
  return {
    async open(row) {
      const { tenant_id, picker_id, chat_id, type, payload, turn_id, agent_id, agent_picker_id } = row;
      const named = [tenant_id, picker_id, chat_id, threadKey(row), type, json(payload), turn_id, agent_id, agent_picker_id];
      try {
        return (await sql.rows(open, [...named, row.state, json(row.value), row.answered_by, row.expires_at, row.created_at])).length > 0;
      } catch (error) {
        if (sqlState(error) === foreignKeyViolation) return false;
        throw error;
      }
    },
    get,
    these: async (tenant_id, picker_ids) =>
      picker_ids.length === 0 ? [] : (await sql.rows(these, [tenant_id, picker_ids], 'pickers_these')).map(rowOf<PickerRow>),
    list: async (tenant_id, turn_id) => (await sql.rows(listOpen, [tenant_id, turn_id ?? null])).map(rowOf<PickerRow>),
    async close(tenant_id, picker_id, { state, value, answered_by }) {
      if ((await sql.rows(close, [tenant_id, picker_id, state, json(value), answered_by])).length > 0) return 'won';
      const row = await get(tenant_id, picker_id);
      if (!row) return undefined;
      return answered_by !== null && row.answered_by === answered_by ? 'won' : 'lost';
    },
    expired: async (now, { limit, after }) => {
      const from = [after?.expires_at ?? 0, after?.tenant_id ?? '', after?.picker_id ?? ''];
      return (await sql.everywhere.rows(expired, [now, limit, ...from])).map(rowOf<PickerRow>);
    },
  };
}
