import type { Chance } from '../chance.js';
import type { AnyFrame } from '../frames.js';
import type { Scope, TestDevice } from '../test-device.js';
import type { ProcessClock } from '../timeline.js';
import type { Dial } from '../wire.js';

/**
 * What an app does around the protocol: comes back after each loss of its connection, catches up with `sync`, and repeats a
 * send that was not answered, with the same `client_ref`.
 */
export interface App {
  readonly device: TestDevice;
  /** Sends not answered yet, by `client_ref`. */
  readonly owed: number;
  send(text: string, scope?: Scope): void;
  /** A frame that wants an answer, once, on this connection. */
  ask(type: string, payload: Record<string, unknown>, scope?: Scope): void;
  /** It goes away and does not come back by itself. */
  leave(how?: { silent?: boolean }): void;
  come(): void;
  readonly online: boolean;
}

export interface AppOptions {
  readonly device: TestDevice;
  readonly clock: ProcessClock;
  readonly chance: Chance;
  /** A door that is open now. */
  readonly dial: () => Dial;
  /** Milliseconds until it tries again. */
  readonly retry_ms: readonly [number, number];
  /** Whether it asks `sync` from its own position or lets the gateway know it. */
  readonly own_cursor: boolean;
}

export function app({ device, clock, chance, dial, retry_ms, own_cursor }: AppOptions): App {
  let wanted = false;
  let connecting = false;
  let online = false;
  let refs = 0;
  let position: number | undefined;
  const owed = new Map<string, { text: string; scope: Scope }>();

  const transmit = (client_ref: string) => {
    const item = owed.get(client_ref);
    if (item === undefined) return;
    device.send(item.text, { ...item.scope, client_ref }).then(
      (answer) => {
        // `internal` says that the outcome is not known, and a rate that it may be tried later: both are sent again.
        const again = answer.type === 'error' && (answer.payload.code === 'internal' || answer.payload.code === 'rate_limited');
        if (again) clock.after(500, () => online && transmit(client_ref));
        else owed.delete(client_ref);
      },
      () => {},
    );
  };
  const learn = (frame: AnyFrame) => {
    if (frame.type === 'sync.done') position = frame.payload.cursor;
  };
  const connect = async () => {
    if (connecting || online || !wanted) return;
    connecting = true;
    try {
      const answer = await device.join(dial());
      if (answer.type !== 'hello.ack') throw new Error('refused');
      online = true;
      position ??= answer.payload.sync_cursor;
      void device.closed({ within_ms: 10 ** 9 }).then(lost, () => {});
      learn(await device.sync(own_cursor ? position : undefined));
      for (const ref of owed.keys()) transmit(ref);
    } catch {
      if (!online) device.cut();
    } finally {
      connecting = false;
    }
    if (!online) again();
  };
  const lost = () => {
    online = false;
    again();
  };
  const again = () => {
    if (wanted) clock.after(chance.between(...retry_ms), () => void connect());
  };
  return {
    device,
    get owed() {
      return owed.size;
    },
    get online() {
      return online;
    },
    send(text, scope = {}) {
      const client_ref = `${device.device_id} ${++refs}`;
      owed.set(client_ref, { text, scope });
      if (online) transmit(client_ref);
    },
    ask(type, payload, scope = {}) {
      if (online) device.request(type, payload, scope).catch(() => {});
    },
    leave(how) {
      wanted = false;
      device.cut(how);
    },
    come() {
      wanted = true;
      void connect();
    },
  };
}
