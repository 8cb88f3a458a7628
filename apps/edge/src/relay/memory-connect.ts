import type { Connect } from '@iris/agent-link';
import { closeCodes } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import type { Socket, SocketEvents } from '../socket.js';

/** Opens an agent's link on this edge, as if it had come by the network. */
export type Opens = (socket: Socket, token: string) => SocketEvents;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** The link between the edge and an agent that lives in it. `leaves`: the edge itself goes, and so must whoever is behind the agent. */
export const memoryConnect =
  (opens: Opens, clock: Clock, leaves: (code: number, reason: string) => void): Connect =>
  (_url, { token }, events) => {
    let over = false;
    const end = (code: number, reason: string) => {
      if (over) return;
      over = true;
      // Neither side is called back from within a call of its own.
      clock.soon(() => {
        server.closed();
        events.closed(code, reason);
      });
      if (code === closeCodes.restarting && reason.startsWith('this edge goes')) leaves(code, reason);
    };
    const later = (run: () => void) =>
      clock.soon(() => {
        if (!over) run();
      });
    const server = opens(
      {
        send: (data) => {
          const text = decoder.decode(data);
          later(() => events.message(text));
        },
        // It lives as long as this process; what is behind it has pings of its own.
        ping: (data) => {
          const copy = data.slice();
          later(() => server.pong(copy));
        },
        welcome() {},
        close: end,
        terminate: () => end(1006, ''),
        buffered: () => 0,
        join() {},
        leave() {},
        publish() {},
      },
      token,
    );
    later(() => events.open());
    return {
      send: (text) => later(() => server.message(encoder.encode(text), false)),
      close: end,
      terminate: () => end(1006, ''),
      buffered: () => 0,
    };
  };
