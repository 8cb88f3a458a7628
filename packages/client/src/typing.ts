import type { DownFrame } from '@iris/protocol';
import type { ClientClock } from './socket.js';
import { keyOf } from './state.js';

type Timer = ReturnType<ClientClock['after']>;

/** The gateway ends typing after 10 seconds (TYP2); its word may be lost, since it is said once, live. */
const typingEnds_ms = 12_000;

/** Looks after lanes in which somebody types: `end` is called with the key of one that was not heard of for too long. */
export function typingWatch({ clock, end }: { readonly clock: ClientClock; end(key: string): void }) {
  const timers = new Map<string, Timer>();
  const forget = (key: string) => {
    timers.get(key)?.cancel();
    timers.delete(key);
  };
  return {
    heard(frame: DownFrame): void {
      if (frame.type !== 'typing' && frame.type !== 'typing.stop' && frame.type !== 'agent.idle') return;
      const key = keyOf(frame as { chat_id: string; thread_id?: string | null });
      forget(key);
      if (frame.type !== 'typing' || !frame.payload.on) return;
      timers.set(
        key,
        clock.after(typingEnds_ms, () => {
          timers.delete(key);
          end(key);
        }),
      );
    },
    /** Nobody types any more. */
    clear(): void {
      for (const key of [...timers.keys()]) forget(key);
    },
  };
}
