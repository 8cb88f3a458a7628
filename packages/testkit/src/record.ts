/**
 * How a test waits. `found` is asked again after everything that happens; rejects when it has given nothing within
 * `within_ms`, with what `describe` says. In a world time is virtual; on real servers the limit is only a failsafe.
 */
export interface Patience {
  wait<T>(found: () => T | undefined, options: { within_ms?: number | undefined; describe: () => string }): Promise<T>;
  /** Told by a record each time that something was added. */
  stir(): void;
  now(): number;
}

/** For real sockets: wakes at each event, gives up after `limit_ms` of real time. */
export function realPatience(limit_ms = 20_000): Patience {
  const waiting = new Set<() => void>();
  return {
    now: () => Date.now(),
    stir() {
      for (const look of [...waiting]) look();
    },
    wait: (found, { within_ms = limit_ms, describe }) =>
      new Promise((resolve, reject) => {
        const end = () => {
          waiting.delete(look);
          clearTimeout(timer);
        };
        const look = () => {
          let value: ReturnType<typeof found>;
          try {
            value = found();
          } catch (error) {
            end();
            return reject(error as Error);
          }
          if (value === undefined) return;
          end();
          resolve(value);
        };
        const timer = setTimeout(() => {
          end();
          reject(new Error(`nothing within ${within_ms} ms: ${describe()}`));
        }, within_ms);
        timer.unref();
        waiting.add(look);
        look();
      }),
  };
}

/**
 * Of one among many: what happens to it is looked at by those who wait for it, and by those who wait with `all`. With one patience for a thousand
 * devices each frame would wake a thousand.
 */
export function ownPatience(all: Patience, limit_ms?: number): Patience {
  const own = realPatience(limit_ms);
  return {
    ...own,
    stir() {
      own.stir();
      all.stir();
    },
  };
}

/** Everything of one kind that happened, in order of arrival, and a mark up to which the test has looked. */
export interface Recording<T> {
  readonly all: readonly T[];
  add(item: T): void;
  /** The first match after the mark, waiting for it if need be; the mark moves behind it. */
  next(matches: (item: T) => boolean, options?: { within_ms?: number | undefined; what?: string }): Promise<T>;
  /** Look again from here: everything recorded so far is behind the mark. */
  skip(): void;
  /** What is after the mark now. */
  rest(): readonly T[];
}

export function record<T>(patience: Patience, show: (item: T) => string): Recording<T> {
  const all: T[] = [];
  let mark = 0;
  return {
    all,
    add(item) {
      all.push(item);
      patience.stir();
    },
    next(matches, { within_ms, what = 'a match' } = {}) {
      let at = mark;
      return patience.wait(
        () => {
          for (at = Math.max(at, mark); at < all.length; at++) {
            const item = all[at]!;
            if (!matches(item)) continue;
            mark = at + 1;
            return item;
          }
          return undefined;
        },
        {
          within_ms,
          describe: () => `waited for ${what}; since the mark came\n  ${all.slice(mark).slice(-30).map(show).join('\n  ') || '(nothing)'}`,
        },
      );
    },
    skip: () => {
      mark = all.length;
    },
    rest: () => all.slice(mark),
  };
}
