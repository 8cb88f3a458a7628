import type { Effects, Emission, Placed } from './emission.js';

/** An emission whose maker waits. */
export interface Waiting {
  readonly emission: Emission;
  resolve(placed: readonly Placed[]): void;
  reject(error: unknown): void;
}
/** One that is in the store, with what goes out because of it. */
export interface Done {
  readonly waiting: Waiting;
  readonly effects: Effects;
}
/** Emissions of one tenant that go together. */
const batchMax = 256;

/** How many of those in front go as one batch. */
export function batchSize(waiting: readonly Waiting[]): number {
  const placeOf = ({ emission }: Waiting) =>
    emission.kind === 'greeting' ? 'greeting' : emission.kind === 'change' ? emission.place : undefined;
  const first = placeOf(waiting[0]!);
  if (first === 'alone') return 1;
  let size = 1;
  while (size < waiting.length && size < batchMax) {
    const place = placeOf(waiting[size]!);
    const joins = first === 'greeting' ? place === 'greeting' : place === undefined || (place === 'fresh' && first === 'fresh');
    if (!joins) break;
    size++;
  }
  return size;
}
