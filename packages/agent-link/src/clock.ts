/** A timer that can be taken back. Cancelling one that has fired does nothing. */
export interface Timer {
  cancel(): void;
}

/** All time of the SDK. The shape of the gateway's own clock, so that one test clock can drive both sides. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number;
  after(ms: number, run: () => void): Timer;
  every(ms: number, run: () => void): Timer;
  /** Once, after what is already waiting in this turn of the loop. */
  soon(run: () => void): void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return { cancel: () => clearTimeout(timer) };
  },
  every(ms, run) {
    const timer = setInterval(run, ms);
    return { cancel: () => clearInterval(timer) };
  },
  soon: (run) => void setImmediate(run),
};
