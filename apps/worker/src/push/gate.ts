import type { Clock } from '@iris/runtime';

/** Requests to one server: so many at once, so many a second; the others wait in line, and nobody of another line with them. */
export interface Gate {
  /** Resolves with the function that gives the place back. */
  enter(): Promise<() => void>;
}

export function gate({ clock, at_once, per_second }: { clock: Clock; at_once: number; per_second: number }): Gate {
  const waiting: (() => void)[] = [];
  let under_way = 0;
  let tokens = per_second;
  let filled_at = clock.now();
  let armed = false;

  const pump = () => {
    const now = clock.now();
    tokens = Math.min(per_second, tokens + ((now - filled_at) * per_second) / 1_000);
    filled_at = now;
    while (waiting.length > 0 && under_way < at_once && tokens >= 1) {
      tokens--;
      under_way++;
      waiting.shift()!();
    }
    if (waiting.length === 0 || under_way >= at_once || armed) return;
    armed = true;
    clock.after(Math.ceil(((1 - tokens) * 1_000) / per_second), () => {
      armed = false;
      pump();
    });
  };
  return {
    enter: () =>
      new Promise((resolve) => {
        waiting.push(() => {
          let inside = true;
          resolve(() => {
            if (!inside) return;
            inside = false;
            under_way--;
            pump();
          });
        });
        pump();
      }),
  };
}

/** One gate per server. */
export function gates(make: (name: string) => Gate): (name: string) => Gate {
  const known = new Map<string, Gate>();
  return (name) => {
    let one = known.get(name);
    if (one === undefined) {
      one = make(name);
      known.set(name, one);
    }
    return one;
  };
}
