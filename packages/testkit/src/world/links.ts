import type { Opening, Socket, SocketEvents } from '@iris/edge';
import type { Chance } from '../chance.js';
import { type Direction, type SocketPairs, socketPairs } from '../socket-pair.js';
import type { ProcessClock } from '../timeline.js';
import type { Dial } from '../wire.js';
import { brokenReceipts } from './breaks.js';
import type { Break } from './faults.js';

/** The way between the clients of a world and one of its edges. */
export interface EdgeLinks {
  readonly pairs: SocketPairs;
  dial(path: Opening['path'], options?: { token?: string; address?: string }): Dial;
}

export interface EdgeLinksOptions {
  readonly edge: ProcessClock;
  readonly net: ProcessClock;
  readonly clients: ProcessClock;
  readonly chance: Chance;
  readonly delay_ms: () => readonly [number, number];
  readonly window_bytes: number;
  readonly breaks: ReadonlySet<Break>;
  accept(socket: Socket, opening: Opening): SocketEvents;
}

/** Both directions keep their order; what is under way when the edge dies is lost. */
export function edgeLinks(options: EdgeLinksOptions): EdgeLinks {
  const { edge, net, clients, chance, breaks } = options;
  const arrivals: Record<Direction, number> = { to_client: 0, to_server: 0 };
  const underWay: Record<Direction, number> = { to_client: 0, to_server: 0 };
  const carry = (direction: Direction, deliver: () => void) => {
    const to = direction === 'to_server' ? edge : clients;
    const [low, high] = options.delay_ms();
    const due = Math.max(net.now() + (high === 0 ? 0 : chance.between(low, high)), arrivals[direction]);
    arrivals[direction] = due;
    // One that is due now must not pass those that are due now too, but still lie in wait.
    if (due <= net.now() && underWay[direction] === 0) return to.soon(deliver);
    underWay[direction]++;
    net.after(Math.max(0, due - net.now()), () => {
      underWay[direction]--;
      to.soon(deliver);
    });
  };
  const pairs = socketPairs({ window_bytes: options.window_bytes, max_bytes: 1024 * 1024, carry });
  return {
    pairs,
    dial:
      (path, { token, address = '127.0.0.1' } = {}) =>
      async (events) => {
        if (!edge.alive) throw new Error('connection refused');
        const honest = path === '/ws' ? brokenReceipts(events.message, breaks) : events.message;
        const message = breaks.has('answer_twice') ? twice(honest) : honest;
        return pairs.open({ path, address, ...(token === undefined ? {} : { token }) }, options.accept, { ...events, message });
      },
  };
}

/** The break of that name. */
function twice(message: (data: string | Uint8Array) => void) {
  return (data: string | Uint8Array) => {
    message(data);
    if (typeof data === 'string' && (JSON.parse(data) as { id?: unknown }).id !== undefined) message(data);
  };
}
