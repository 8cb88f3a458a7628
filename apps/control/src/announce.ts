import type { Bus, Control } from '@iris/bus';
import { subjects } from '@iris/bus';
import type { Log } from '@iris/runtime';

/** Tell every edge and session instance. */
export interface Announcer {
  /** Resolves when the broker has it, or it is kept for when the broker is back. */
  announce(control: Control): Promise<void>;
  close(): void;
}

/** How many wait for a broker that is away; older ones are dropped, and whoever missed them reads the store by itself. */
const waitingMax = 1_000;
const utf8 = new TextEncoder();

/** The bus drops what is published while the broker is away; a revocation must not be lost with it. */
export function announcer({ bus, log }: { bus: Bus; log: Log }): Announcer {
  const waiting: Control[] = [];
  const publish = (control: Control) => bus.publish(subjects.control, utf8.encode(JSON.stringify(control)));
  const keep = (control: Control) => {
    waiting.push(control);
    if (waiting.length > waitingMax) waiting.shift();
  };
  const end = bus.onConnected((connected) => {
    if (connected) for (const control of waiting.splice(0)) publish(control);
  });
  return {
    async announce(control) {
      if (!bus.connected) return keep(control);
      publish(control);
      try {
        await bus.flush();
      } catch (error) {
        log.warn('control.announce_waits', { kind: control.kind, error });
        keep(control);
      }
    },
    close: end,
  };
}
