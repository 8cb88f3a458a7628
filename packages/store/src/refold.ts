import type pg from 'pg';
import { foldedText } from './search/folded-text.js';

const batch = 500;

const unfolded = `SELECT tenant_id, message_id, text FROM message WHERE search_grams IS NULL AND deleted_at IS NULL LIMIT ${batch}`;
const fold = `
UPDATE message m SET search_text = f.search_text, search_grams = f.search_grams
FROM json_to_recordset($1::json) AS f(tenant_id text, message_id text, text text, search_text text, search_grams int[])
WHERE m.tenant_id = f.tenant_id AND m.message_id = f.message_id AND m.text = f.text`;
const emptyDeleted = `UPDATE message SET search_grams = '{}' WHERE search_grams IS NULL AND deleted_at IS NOT NULL`;

/**
 * Folds messages that another version stored, or a migration marked by taking their grams away: search by the index finds them again. Each
 * batch is committed, so what is interrupted goes on from there. How many there were.
 */
export async function refold(client: pg.Client): Promise<number> {
  let count = 0;
  for (;;) {
    const { rows } = await client.query<{ tenant_id: string; message_id: string; text: string }>(unfolded);
    if (rows.length === 0) break;
    const folded = rows.map((row) => ({ ...row, ...foldedText(row.tenant_id, row.text) }));
    await client.query(fold, [JSON.stringify(folded)]);
    count += rows.length;
  }
  await client.query(emptyDeleted);
  return count;
}
