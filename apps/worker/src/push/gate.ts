import type { TenantId } from '@iris/protocol';
import { type Clock, fairLine } from '@iris/runtime';

/**
 * Requests to one server: so many at once, so many a second; the others wait in line, and nobody of another line with them. Tenants that wait take
 * turns, however much each has to say.
 */
export interface Gate {
  /** Resolves with the function that gives the place back. */
  enter(tenant_id: TenantId): Promise<() => void>;
}

const turn = { weight: 1, cost: 1 };

export function gate({ clock, at_once, per_second }: { clock: Clock; at_once: number; per_second: number }): Gate {
  const waiting = fairLine<TenantId, () => void>();
  let under_way = 0;
  let tokens = per_second;
  let filled_at = clock.now();
  let armed = false;

  const pump = () => {
    const now = clock.now();
    tokens = Math.min(per_second, tokens + ((now - filled_at) * per_second) / 1_000);
    filled_at = now;
    while (waiting.size > 0 && under_way < at_once && tokens >= 1) {
      tokens--;
      under_way++;
      waiting.next()!();
    }
    if (waiting.size === 0 || under_way >= at_once || armed) return;
    armed = true;
    clock.after(Math.ceil(((1 - tokens) * 1_000) / per_second), () => {
      armed = false;
      pump();
    });
  };
  return {
    enter: (tenant_id) =>
      new Promise((resolve) => {
        waiting.push(tenant_id, turn, () => {
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
