import type { Turn } from '@iris/agent-link';
import type { Stage } from './stage.js';

/** One thing that `/demo` shows. */
export interface Scene {
  readonly name: string;
  readonly args_hint?: string;
  readonly description: string;
  /** Part of the tour, which takes its arguments from here. */
  readonly tour?: string;
  run(turn: Turn, args: string, stage: Stage): Promise<void> | void;
}

/** The first words of `args` as numbers, each held within its bounds; what is missing or no number takes the default. */
export function numbers(
  args: string,
  ...bounds: readonly { readonly or: number; readonly min?: number; readonly max: number }[]
): number[] {
  const given = args.split(/\s+/);
  return bounds.map(({ or, min = 0, max }, i) => {
    const value = Number.parseFloat(given[i] ?? '');
    return Number.isFinite(value) ? Math.min(max, Math.max(min, value)) : or;
  });
}
