import type { Clock } from '@iris/runtime';

export const pause = (clock: Clock, ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));

/**
 * Ask again until it says yes.
 * @returns false when `within_ms` have passed
 */
export async function until(clock: Clock, within_ms: number, ask: () => Promise<boolean> | boolean, every_ms = 25): Promise<boolean> {
  const end = clock.now() + within_ms;
  for (;;) {
    if (await ask()) return true;
    if (clock.now() >= end) return false;
    await pause(clock, every_ms);
  }
}
