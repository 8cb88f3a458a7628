import { admit, type Random } from '@iris/runtime';
import type { AgentLink } from './agent/link.js';
import type { DeviceConnection } from './connection.js';

/** Whoever says hello, and what becomes of it: exactly one of these is called, now or in a later tick. */
interface Entrant {
  readonly connection: DeviceConnection | AgentLink;
  /** It is its turn. */
  go(): void;
  /** It was gone before. */
  left(): void;
  /** More wait than can get in before they are given up: come back in so many milliseconds. */
  refuse(wait_ms: number): void;
}

/**
 * A herd that returns (an edge died, a network came back) says hello all at once, and each hello costs the sessions several statements. They are
 * let in at a bounded rate, in order. Who would wait longer than `patience_ms` is told at once when there will be room, each another time, so
 * that the next wave is no herd.
 */
export interface Admission {
  enter(entrant: Entrant, now: number): void;
  tick(now: number): void;
  readonly size: number;
}

export function admission(
  config: { readonly per_second: number; readonly burst: number; readonly patience_ms: number },
  random: Random,
): Admission {
  let full_at = 0;
  let waiting: Entrant[] = [];
  const most = Math.ceil((config.per_second * config.patience_ms) / 1_000);
  const take = (now: number): boolean => {
    const next = admit(full_at, now, config.per_second, config.burst);
    if (next < 0) return false;
    full_at = next;
    return true;
  };
  return {
    enter(entrant, now) {
      if (waiting.length === 0 && take(now)) entrant.go();
      else if (waiting.length < most) waiting.push(entrant);
      else entrant.refuse(Math.ceil(config.patience_ms * (0.5 + random.unit())));
    },
    tick(now) {
      let through = 0;
      for (const { connection, go, left } of waiting) {
        // Those who are gone cost nothing.
        if (connection.state.kind !== 'greeting') left();
        else if (take(now)) go();
        else break;
        through++;
      }
      if (through > 0) waiting = waiting.slice(through);
    },
    get size() {
      return waiting.length;
    },
  };
}
