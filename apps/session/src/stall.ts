import { announceDead_ms, announceEvery_ms } from '@iris/bus';
import type { Clock } from '@iris/runtime';

/** Whether this process has just stood still for so long that others may have taken its work over. */
export interface StallWatch {
  /** What comes now may have waited while everybody thought that we are dead: it was asked of another, and its time may be over. */
  doubtful(): boolean;
  end(): void;
}

const look_ms = 250;
/** Shorter than that, nobody can have missed an announcement for long enough. */
const stall_ms = announceDead_ms - announceEvery_ms;
/** What waited comes in over more than one turn of the loop. */
const doubt_ms = 1_000;

/**
 * A frozen process that is thawed finds in its sockets what was sent to it meanwhile: requests that another instance has answered long ago,
 * and hellos of connections that are gone. Those must not take anything back. What is still wanted is asked again.
 */
export function stallWatch(clock: Clock): StallWatch {
  let last = clock.now();
  /** When it was noticed; a clock that is set back must not make it last. */
  let noticed = Number.NEGATIVE_INFINITY;
  const look = () => {
    const now = clock.now();
    if (now - last > stall_ms) noticed = now;
    last = now;
  };
  const timer = clock.every(look_ms, look);
  return {
    doubtful() {
      const now = clock.now();
      return (now >= noticed && now < noticed + doubt_ms) || now - last > stall_ms;
    },
    end: () => timer.cancel(),
  };
}
