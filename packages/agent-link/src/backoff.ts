const first_ms = 250;
const most_ms = 30_000;

/** Milliseconds to wait before try number `attempt` (from 0): doubling, at most 30 s, half of it jitter so that many agents don't come back at once. */
export function reconnectDelay(attempt: number, random: () => number): number {
  const whole = Math.min(most_ms, first_ms * 2 ** Math.min(attempt, 20));
  return Math.round(whole / 2 + (random() * whole) / 2);
}
