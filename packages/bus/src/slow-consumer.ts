import type { Clock, Log, Meter } from '@iris/runtime';

/** A consumer that is this far behind what the bus brings is slow: whoever waits for it waits that long, and what it loses is repaired later still. */
const slow_ms = 1_000;
const look_ms = 500;

export interface Pace {
  /** The server ended the connection; `own` when it said why, or when it was we who gave it up. */
  lost(own: boolean): void;
  /** There is a connection again. */
  regained(server_id: string | undefined): void;
  stop(): void;
}

/**
 * Says when this process is slow at taking what the bus brings it. A broker such as NATS core tells nobody that it drops for a slow consumer: it ends
 * the connection once too much waits for it, or has nothing to say at all while less does. So it is seen from here:
 *
 * - `stood_still`: the event loop did not turn. All that came meanwhile waited.
 * - `backlog`: what comes from the server keeps coming, and its answer to a ping stands behind it.
 * - `cut_off`: the connection ended without a word, and the server it led to lives on. What had waited there for this process is lost.
 */
export function watchPace(deps: {
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** Resolves with the answer of the server; rejects when the connection is gone. */
  readonly ping: () => Promise<void>;
  /** Bytes that came in so far. */
  readonly bytesIn: () => number;
  readonly server_id: string | undefined;
}): Pace {
  const { clock, log } = deps;
  const counter = deps.meter.counter('iris_bus_slow_consumer_total');
  let last = clock.now();
  let bytes = deps.bytesIn();
  let server_id = deps.server_id;
  let silently = false;
  let asked: { readonly at: number; looks: number; flowing: number; told: boolean } | undefined;

  const slow = (why: 'stood_still' | 'backlog' | 'cut_off', more: object = {}) => {
    counter.add(1, { why });
    log.warn('bus.slow_consumer', { why, ...more });
  };
  const ask = () => {
    const ours = { at: clock.now(), looks: 0, flowing: 0, told: false };
    asked = ours;
    deps
      .ping()
      .catch(() => {})
      .finally(() => {
        if (asked === ours) asked = undefined;
      });
  };
  const timer = clock.every(look_ms, () => {
    const now = clock.now();
    const still_ms = now - last - look_ms;
    const flows = deps.bytesIn() > bytes;
    last = now;
    bytes = deps.bytesIn();
    if (still_ms >= slow_ms) {
      slow('stood_still', { still_ms });
      // The answer came while nobody looked.
      asked = undefined;
    }
    if (asked === undefined) return ask();
    asked.looks++;
    if (flows) asked.flowing++;
    // A server that stands still itself sends nothing either.
    if (asked.told || now - asked.at < slow_ms || asked.flowing < asked.looks) return;
    asked.told = true;
    slow('backlog', { behind_ms: now - asked.at });
  });
  return {
    lost(own) {
      silently = !own;
      asked = undefined;
    },
    regained(to) {
      if (silently && to !== undefined && to === server_id) slow('cut_off');
      server_id = to;
      silently = false;
    },
    stop: () => timer.cancel(),
  };
}
