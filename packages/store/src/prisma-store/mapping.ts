import type { Lane } from '@iris/protocol';

/**
 * A record of the database as a row of rows.ts: whole numbers that came as `bigint` become numbers (all are below 2^53), and
 * the flat lane's empty `thread_id` becomes null.
 */
export function rowOf<T>(record: object): T {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name,
      typeof value === 'bigint' ? Number(value) : name === 'thread_id' && value === '' ? null : value,
    ]),
  ) as T;
}

export const maybeRowOf = <T>(record: object | null | undefined): T | undefined => (record ? rowOf<T>(record) : undefined);

/** `thread_id` as it is kept. */
export const threadKey = (lane: { readonly thread_id: Lane['thread_id'] }): string => lane.thread_id ?? '';

/** A value for a JSON column; null stays SQL's null. */
export const json = (value: unknown): string | null => (value === null || value === undefined ? null : JSON.stringify(value));
