import { admit } from '@iris/runtime';
import type { DeviceConnection } from './connection.js';

/**
 * A herd that returns (an edge died, a network came back) says hello all at once, and each hello costs the sessions several statements. They are
 * let in at a bounded rate, in order; who waits too long is told to come back (`greetingTick`).
 */
export interface Admission {
  /** Calls `go` now or in a later tick, unless the connection is closed by then: then `left`. */
  enter(connection: DeviceConnection, now: number, go: () => void, left: () => void): void;
  tick(now: number): void;
  readonly size: number;
}

export function admission(config: { readonly hellos_per_second: number; readonly hellos_burst: number }): Admission {
  let full_at = 0;
  let waiting: { connection: DeviceConnection; go: () => void; left: () => void }[] = [];
  const take = (now: number): boolean => {
    const next = admit(full_at, now, config.hellos_per_second, config.hellos_burst);
    if (next < 0) return false;
    full_at = next;
    return true;
  };
  return {
    enter(connection, now, go, left) {
      if (waiting.length === 0 && take(now)) go();
      else waiting.push({ connection, go, left });
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
