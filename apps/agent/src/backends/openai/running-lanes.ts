import { type LanePlace, laneKey } from './lane-settings.js';

/** Lanes in which an answer is being made: commands run beside turns, and some must not. */
export interface RunningLanes {
  has(lane: LanePlace): boolean;
  during(lane: LanePlace, run: () => Promise<void>): Promise<void>;
}

export function runningLanes(): RunningLanes {
  const running = new Map<string, number>();
  return {
    has: (lane) => running.has(laneKey(lane)),
    async during(lane, run) {
      const key = laneKey(lane);
      running.set(key, (running.get(key) ?? 0) + 1);
      try {
        await run();
      } finally {
        const left = (running.get(key) ?? 1) - 1;
        if (left > 0) running.set(key, left);
        else running.delete(key);
      }
    },
  };
}
