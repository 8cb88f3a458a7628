/** Rows are copied on their way in and out of the memory store, so that nobody shares a value with it. */
export function copy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copy) as T;
  // `fromEntries` defines, never assigns: a `__proto__` key from a peer's JSON stays a key.
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copy(inner)])) as T;
}
