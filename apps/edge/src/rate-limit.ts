import { admit, networkOf } from '@iris/runtime';

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
