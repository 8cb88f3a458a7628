import type { Clock } from '@iris/runtime';

/** Milliseconds that a server may ask us to wait; more is told to the person instead. */
export const retry_after_max_ms = 60_000;

/** Milliseconds until the attempt after `failed` failed ones: doubling from half a second to 8 s, of which chance takes up to half. */
export const backoff = (failed: number, random: () => number): number => Math.min(8_000, 500 * 2 ** (failed - 1)) * (0.5 + random() / 2);

/** `Retry-After` in milliseconds, from seconds or a date; undefined when there is none that makes sense. */
export function retryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Passes when the time is over. Rejects with the signal's reason as soon as it is aborted. */
export const pause = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const aborted = () => {
      timer.cancel();
      reject(signal.reason as Error);
    };
    const timer = clock.after(ms, () => {
      signal.removeEventListener('abort', aborted);
      resolve();
    });
    signal.addEventListener('abort', aborted, { once: true });
  });
