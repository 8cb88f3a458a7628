import type { ProcessClock } from '../timeline.js';

/** How the calls of one process reach a server it shares with others, and how the answers come back. */
export interface Passage {
  pass<R>(name: string, call: () => Promise<R>): Promise<R>;
}

export interface PassageOptions {
  readonly process: ProcessClock;
  /** The network's own clock: what is under way arrives also when the sender is dead. */
  readonly net: ProcessClock;
  /** Milliseconds for one way, drawn anew each time. */
  readonly delay_ms: () => number;
  /** Calls arrive in the order they were made, as on one connection. */
  readonly in_order: boolean;
  /** Whether a call that was under way when its process died still arrives. */
  readonly arrives_dead: () => boolean;
}

/**
 * A dead process hears no answer, ever: its promises stay pending, as its code would never have run on. A frozen one hears it when
 * it thaws.
 */
export function passage({ process, net, delay_ms, in_order, arrives_dead }: PassageOptions): Passage {
  let last = 0;
  const later = (ms: number, run: () => void) => (ms <= 0 ? run() : void net.after(ms, run));
  return {
    pass: (_, call) =>
      new Promise((resolve, reject) => {
        if (!process.alive) return;
        let there = net.now() + delay_ms();
        if (in_order) {
          there = Math.max(there, last);
          last = there;
        }
        const back = (finish: () => void) => {
          const ms = delay_ms();
          later(ms, () => {
            if (!process.alive) return;
            // Without delay the answer comes as a promise does, in the same turn.
            if (ms === 0 && there === net.now()) finish();
            else process.soon(finish);
          });
        };
        later(there - net.now(), () => {
          if (!process.alive && !arrives_dead()) return;
          call().then(
            (value) => back(() => resolve(value)),
            (error: unknown) => back(() => reject(error as Error)),
          );
        });
      }),
  };
}

/**
 * The same object, every method of it and of its groups through the passage. Methods named in `direct` do not ask
 * the server and are called as they are.
 */
export function through<T extends object>(target: T, by: Passage, direct: readonly string[] = [], path = ''): T {
  return new Proxy(target, {
    get(object, property, receiver): unknown {
      const value: unknown = Reflect.get(object, property, object === target ? object : receiver);
      if (typeof property !== 'string' || direct.includes(property)) return value;
      const name = path === '' ? property : `${path}.${property}`;
      if (typeof value === 'function')
        return (...given: unknown[]) => by.pass(name, async () => (await Reflect.apply(value, object, given)) as unknown);
      if (typeof value === 'object' && value !== null) return through(value, by, direct, name);
      return value;
    },
  });
}
