import { type Clock, systemClock } from '@iris/runtime';
import { answerBytesMax, type Bus, BusClosed, BusTimeout, busBytesMax, NoResponders, type Subscription } from './bus.js';

/** One message on its way to one receiver. */
export interface Delivery {
  readonly kind: 'publish' | 'request' | 'answer';
  readonly subject: string;
  /** Names of the connections, as given to {@link MemoryHub.connect}. */
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  /** Hand it over. Never called: lost. Called twice: repeated. Called late: delayed or reordered. A receiver that is gone gets nothing. */
  run(): void;
}

/** The broker, in memory: all connections of one hub hear each other. */
export interface MemoryHub {
  /** @param name for {@link Delivery}; made up when absent */
  connect(name?: string): MemoryBus;
}

export interface MemoryBus extends Bus {
  /** Lose or regain the broker: nothing comes or goes while it is lost, and others find nobody serving here. */
  setConnected(connected: boolean): void;
}

export interface MemoryHubOptions {
  readonly clock?: Clock;
  /** Decides when each message arrives, if at all; by default each arrives in a microtask of its own, in order. */
  readonly deliver?: (delivery: Delivery) => void;
  /** Overwrite what a handler was given once it has returned, to find those that keep it without copying. */
  readonly poison?: boolean;
}

interface Listener<H> {
  readonly bus: Member;
  readonly handler: H;
}
type Heard = Listener<(data: Uint8Array) => void>;
type Served = Listener<(data: Uint8Array) => Uint8Array>;
interface Member {
  readonly name: string;
  reachable(): boolean;
}

export function memoryHub({
  clock = systemClock,
  deliver = ({ run }) => queueMicrotask(run),
  poison = false,
}: MemoryHubOptions = {}): MemoryHub {
  const heard = new Map<string, Set<Heard>>();
  const served = new Map<string, Set<Served>>();
  let count = 0;

  /** Run `handler` on bytes of its own: what the sender does with its buffer later must not show, nor what a handler does with its. */
  const give = <R>(data: Uint8Array, handler: (data: Uint8Array) => R): R => {
    const given = data.slice();
    const result = handler(given);
    if (poison) given.fill(0xa5);
    return result;
  };

  const connect = (name = `bus-${++count}`): MemoryBus => {
    let connected = true;
    let closed = false;
    const listeners = new Set<(connected: boolean) => void>();
    const subscriptions = new Set<Subscription>();
    const waiting = new Set<(error: Error) => void>();
    const self: Member = { name, reachable: () => connected && !closed };

    const listen = <H>(table: Map<string, Set<Listener<H>>>, subject: string, handler: H): Subscription => {
      const listener: Listener<H> = { bus: self, handler };
      const all = table.get(subject) ?? new Set();
      table.set(subject, all.add(listener));
      const subscription = {
        end() {
          subscriptions.delete(subscription);
          all.delete(listener);
          if (all.size === 0 && table.get(subject) === all) table.delete(subject);
        },
      };
      subscriptions.add(subscription);
      return subscription;
    };

    const check = (data: Uint8Array) => {
      if (data.length > busBytesMax) throw new RangeError(`${data.length} bytes are more than one bus message carries`);
    };

    return {
      publish(subject, data) {
        check(data);
        if (!self.reachable()) return;
        const listenersNow = [...(heard.get(subject) ?? [])];
        if (listenersNow.length === 0) return;
        const kept = data.slice();
        for (const listener of listenersNow) {
          const run = () => {
            if (listener.bus.reachable() && heard.get(subject)?.has(listener)) give(kept, listener.handler);
          };
          deliver({ kind: 'publish', subject, from: name, to: listener.bus.name, bytes: kept.length, run });
        }
      },
      subscribe: (subject, handler) => listen(heard, subject, handler),
      serve: (subject, handler) => listen(served, subject, handler),
      request(subject, data, { timeout_ms }) {
        if (closed) return Promise.reject(new BusClosed(`request to ${subject}`));
        if (data.length > busBytesMax) return Promise.reject(new RangeError(`${data.length} bytes are more than one bus message carries`));
        const kept = data.slice();
        return new Promise((resolve, reject) => {
          let done = false;
          const settle = (finish: () => void) => {
            if (done) return;
            done = true;
            timer.cancel();
            waiting.delete(fail);
            finish();
          };
          const fail = (error: Error) => settle(() => reject(error));
          const timer = clock.after(timeout_ms, () => fail(new BusTimeout(`request to ${subject}`)));
          waiting.add(fail);
          if (!self.reachable()) return;
          const servers = [...(served.get(subject) ?? [])].filter((server) => server.bus.reachable());
          if (servers.length === 0) {
            queueMicrotask(() => fail(new NoResponders(subject)));
            return;
          }
          for (const server of servers) {
            const run = () => {
              if (!server.bus.reachable() || !served.get(subject)?.has(server)) return;
              const answer = give(kept, server.handler).slice();
              if (answer.length > answerBytesMax) throw new RangeError(`an answer of ${answer.length} bytes to ${subject}`);
              const back = () => {
                if (self.reachable()) settle(() => resolve(answer));
              };
              deliver({ kind: 'answer', subject, from: server.bus.name, to: name, bytes: answer.length, run: back });
            };
            deliver({ kind: 'request', subject, from: name, to: server.bus.name, bytes: kept.length, run });
          }
        });
      },
      flush() {
        if (closed) return Promise.reject(new BusClosed('flush'));
        if (connected) return Promise.resolve();
        return new Promise((_, reject) => void clock.after(2_000, () => reject(new BusTimeout('flush'))));
      },
      get connected() {
        return self.reachable();
      },
      onConnected(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      setConnected(now) {
        if (closed || now === connected) return;
        connected = now;
        for (const listener of [...listeners]) listener(now);
      },
      async close() {
        if (closed) return;
        closed = true;
        for (const subscription of [...subscriptions]) subscription.end();
        for (const fail of [...waiting]) fail(new BusClosed('closed'));
        listeners.clear();
      },
    };
  };
  return { connect };
}
