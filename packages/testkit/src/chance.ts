import type { Random } from '@iris/runtime';
import { seededRandom } from '@iris/runtime/testing';

/** Seeded choices. The same seed and the same questions give the same answers, on every machine. */
export interface Chance extends Random {
  /** An integer in [low, high], both included. */
  between(low: number, high: number): number;
  /** True in `rate` of all cases; 0 never, 1 always. */
  happens(rate: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** A stream of its own, so that more questions in one place do not shift the answers in another. */
  fork(label: string): Chance;
}

export function chance(seed: number): Chance {
  const source = seededRandom(seed);
  return {
    bytes: source.bytes,
    unit: source.unit,
    between: (low, high) => low + source.int(high - low + 1),
    happens: (rate) => rate > 0 && source.unit() < rate,
    pick: (from) => {
      if (from.length === 0) throw new Error('nothing to pick from');
      return from[source.int(from.length)]!;
    },
    fork: (label) => {
      let h = seed | 0;
      for (let i = 0; i < label.length; i++) h = Math.imul(h ^ label.charCodeAt(i), 0x01000193);
      return chance(h >>> 0);
    },
  };
}
