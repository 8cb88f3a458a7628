import { closeCodes } from '@iris/protocol';
import type { EdgeContext } from '../context.js';
import type { Opening, Socket, SocketEvents } from '../socket.js';
import { toTicks } from '../ticks.js';
import { relayToken } from './auth.js';
import { type Bridge, bridge, type RelayEnd } from './bridge.js';

/** `/relay`: where a Hermes attaches by its own relay contract. */
export interface RelayDoor {
  accept(socket: Socket, opening: Opening): SocketEvents;
  /** Each tick of the edge. */
  tick(): void;
  stop(): void;
}

const ping_ms = 10_000;
const silent_ms = 25_000;
const nothing = new Uint8Array();
const decoder = new TextDecoder();
const encoder = new TextEncoder();
const closed: SocketEvents = { message() {}, pong() {}, drained() {}, closed() {} };

/** @param accept opens an agent's link on this edge */
export function relayDoor(edge: EdgeContext, accept: (socket: Socket, opening: Opening) => SocketEvents): RelayDoor {
  const bridges = new Map<string, Bridge>();
  const sockets = new Map<Socket, { heard: number }>();

  return {
    accept(socket, { token: bearer, address }) {
      const token = bearer === undefined ? undefined : relayToken(bearer, Math.floor(edge.clock.now() / 1_000));
      if (edge.draining || token === undefined) {
        socket.close(
          token === undefined ? closeCodes.auth : closeCodes.restarting,
          token === undefined ? 'unauthorized' : 'this edge goes',
        );
        return closed;
      }
      let one = bridges.get(token);
      if (one === undefined) {
        one = bridge({
          token,
          opens: (inner, given) => accept(inner, { path: '/agent', address, token: given }),
          clock: edge.clock,
          random: () => edge.random.unit(),
          log: edge.log,
          ended: () => {
            if (bridges.get(token) === one) bridges.delete(token);
          },
        });
        bridges.set(token, one);
      }
      const mine = one;
      const state = { heard: edge.time.tick };
      sockets.set(socket, state);
      const end: RelayEnd = {
        send: (text) => socket.send(encoder.encode(text)),
        close: (code, reason) => socket.close(code, reason),
      };
      mine.attach(end);
      return {
        message(data, binary) {
          state.heard = edge.time.tick;
          if (binary) return socket.close(closeCodes.protocol, 'binary frames are not spoken here');
          mine.heard(end, decoder.decode(data));
        },
        pong() {
          state.heard = edge.time.tick;
        },
        drained() {},
        closed() {
          sockets.delete(socket);
          mine.detach(end);
        },
      };
    },
    tick() {
      if (edge.time.tick % toTicks(ping_ms) !== 0) return;
      for (const [socket, { heard }] of sockets) {
        if (edge.time.tick - heard > toTicks(silent_ms)) socket.terminate();
        else socket.ping(nothing);
      }
    },
    stop() {
      for (const socket of sockets.keys()) socket.close(closeCodes.restarting, 'this edge goes; connect again');
      for (const one of bridges.values()) one.stop();
    },
  };
}
