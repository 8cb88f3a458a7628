import { getRandomValues } from 'node:crypto';

/** All chance in the product comes from here, so that tests can seed it. */
export interface Random {
  /** Fresh bytes, unpredictable in production. */
  bytes(count: number): Uint8Array;
  /** A number in [0, 1): for jitter, never for secrets. */
  unit(): number;
}

export const systemRandom: Random = {
  bytes: (count) => getRandomValues(new Uint8Array(count)),
  unit: () => Math.random(),
};
