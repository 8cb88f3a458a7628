/**
 * For a statement that names rows by their keys and joins them to a table: it finds each by the index, however many rows the tenant has.
 *
 * Joins are planned for as much as the average tenant has, and while there are no statistics for next to nothing: then the planner would rather go
 * through all that the tenant has, once per key. For the largest of many tenants that is its square. A question with a price per pair of row and key it
 * asks only where the index has found the pair. The answer is always yes: both are of one tenant, which is there.
 * @param key the list's name in the statement, @param row the table's
 */
export const byKey = (key: string, row: string): string =>
  `(SELECT true FROM tenant one WHERE one.tenant_id = ${key}.tenant_id AND one.tenant_id = ${row}.tenant_id)`;
