/** A bounded number of turns, given in the order of asking. */
export interface Permits {
  /** One at once, or none. */
  tryTake(): boolean;
  /** One as soon as there is one. */
  take(): Promise<void>;
  /** Give one back; whoever waits longest has it then. */
  give(): void;
}

export function permits(count: number): Permits {
  let free = count;
  const waiting: (() => void)[] = [];
  return {
    tryTake() {
      if (free === 0) return false;
      free--;
      return true;
    },
    take() {
      if (free > 0) {
        free--;
        return Promise.resolve();
      }
      return new Promise((resolve) => void waiting.push(resolve));
    },
    give() {
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    },
  };
}
