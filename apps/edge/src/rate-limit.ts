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

export interface AddressLimits {
  readonly sockets_before_hello: number;
  readonly hello_failures_per_minute: number;
  readonly hello_failures_burst: number;
}

/** What one address may do before anybody knows who it is. */
export interface Addresses {
  /** A socket opens; false when the address has too many that have not said hello. */
  enter(address: string): boolean;
  /** It has said hello, or is gone. Once for each successful {@link enter}. */
  leave(address: string): void;
  /**
   * A hello is to be tried. It is paid for in advance, so that many at once cannot all be tried; one that there is nothing left for waits
   * while others are being tried, since they may get theirs back. `decide` is called once, now or later: with 0, and says whether
   * the hello is really tried (then {@link tried} is owed), or with the milliseconds to wait.
   */
  attempt(address: string, now: number, decide: (wait_ms: number) => boolean): void;
  /** How a hello that was tried has ended. A good one costs nothing. */
  tried(address: string, now: number, good: boolean): void;
  /** Forget addresses that owe nothing. */
  sweep(now: number): void;
  readonly size: number;
}

interface Known {
  greeting: number;
  full_at: number;
  /** Hellos that are being tried. */
  trying: number;
  waiting: ((wait_ms: number) => boolean)[];
}

export function addresses(config: AddressLimits): Addresses {
  const known = new Map<string, Known>();
  const per_second = config.hello_failures_per_minute / 60;
  const entry = (address: string): Known => {
    const key = networkOf(address);
    const found = known.get(key) ?? { greeting: 0, full_at: 0, trying: 0, waiting: [] };
    known.set(key, found);
    return found;
  };
  /** Let those who wait go on, as far as there is something left; when nothing will come back, refuse the rest. */
  const go = (one: Known, now: number) => {
    while (one.waiting.length > 0) {
      const next = admit(one.full_at, now, per_second, config.hello_failures_burst);
      if (next < 0 && one.trying > 0) return;
      const decide = one.waiting.shift()!;
      if (next < 0) decide(-next);
      else if (decide(0)) {
        one.full_at = next;
        one.trying++;
      }
    }
  };
  return {
    enter(address) {
      const one = entry(address);
      if (one.greeting >= config.sockets_before_hello) return false;
      one.greeting++;
      return true;
    },
    leave(address) {
      const one = entry(address);
      one.greeting = Math.max(0, one.greeting - 1);
    },
    attempt(address, now, decide) {
      const one = entry(address);
      one.waiting.push(decide);
      // Whoever waits already goes first.
      if (one.waiting.length === 1) go(one, now);
    },
    tried(address, now, good) {
      const one = entry(address);
      one.trying = Math.max(0, one.trying - 1);
      if (good) one.full_at -= 1000 / per_second;
      go(one, now);
    },
    sweep(now) {
      for (const [key, one] of known) if (one.greeting === 0 && one.trying === 0 && one.full_at <= now) known.delete(key);
    },
    get size() {
      return known.size;
    },
  };
}
