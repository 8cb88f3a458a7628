import type { Clock, ProcessEvents } from '@iris/runtime';

/** Closer together than a person can mean two different things by. */
const same_ms = 1_000;

/**
 * Signals as a person means them. A Ctrl-C under npm arrives twice, from the terminal and from npm; the second one would be
 * taken for "at once". A terminal that is closed is a wish to stop, too.
 */
export function calmSignals(events: ProcessEvents, clock: Clock): ProcessEvents {
  let last = Number.NEGATIVE_INFINITY;
  return {
    on(event, listener) {
      if (event !== 'SIGINT' && event !== 'SIGTERM') return events.on(event, listener);
      const heard = (value: unknown) => {
        const now = clock.now();
        const again = now - last < same_ms;
        last = now;
        if (!again) listener(value);
      };
      if (event === 'SIGTERM') events.on('SIGHUP', heard);
      return events.on(event, heard);
    },
    exit: (code) => events.exit(code),
  };
}
