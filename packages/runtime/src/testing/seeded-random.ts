import type { Random } from '../random.js';

/** The same seed gives the same sequence, on every machine (mulberry32). For tests: anyone can predict it. */
export function seededRandom(seed: number): Random & { /** An integer in [0, below). */ int(below: number): number } {
  let state = seed >>> 0;
  const word = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  const unit = () => word() / 0x1_0000_0000;
  return {
    unit,
    int: (below) => Math.floor(unit() * below),
    bytes: (count) => Uint8Array.from({ length: count }, () => word() & 0xff),
  };
}
