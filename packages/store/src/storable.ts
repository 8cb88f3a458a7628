import { cleanValue } from '@iris/protocol';
import type { MessageRow } from './rows.js';

/**
 * The row as every store can keep it. One row that Postgres refuses would take all rows of its statement with it, those of other
 * tenants too; so what should have been cleaned long before is cleaned here once more.
 */
export function storable(row: MessageRow): MessageRow {
  const text = cleanValue(row) as MessageRow;
  return text.tokens === null || Number.isSafeInteger(text.tokens) ? text : { ...text, tokens: null };
}
