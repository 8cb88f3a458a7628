import { isIPv6 } from 'node:net';

/**
 * One bucket as one number, the time at which it would be full again ("theoretical arrival time"): 50,000 idle
 * connections have two each, so a bucket must cost nothing but that.
 * @returns the bucket's next value, or the negative of the milliseconds to wait
 */
export function admit(full_at: number, now: number, per_second: number, burst: number): number {
  if (per_second <= 0 || burst <= 0) return -60_000;
  const interval = 1000 / per_second;
  const room = interval * burst;
  // Beyond what taking can reach: the clock stepped back. Nobody is to pay for that.
  const from = full_at > now + room + interval ? now : Math.max(full_at, now);
  const wait = from + interval - now - room;
  // Sums of fractions: a thousandth of a millisecond is not a wait.
  return wait > 0.001 ? -wait : from + interval;
}

/** Addresses are limited by network: an IPv6 host has 2^64 of them. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? dotted(address);
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = tail === undefined ? left : [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group || '0', 16).toString(16))
    .join(':');
}

/** `0000:0000:0000:0000:0000:ffff:7f00:0001`, as uWebSockets.js writes an IPv4 peer of a dual-stack socket. */
function dotted(address: string): string | undefined {
  const found = /^(?:0{1,4}:){5}ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address);
  if (found === null) return undefined;
  const [high, low] = [Number.parseInt(found[1]!, 16), Number.parseInt(found[2]!, 16)];
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}
