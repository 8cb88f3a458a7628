import { type CloseReason, closeCodes } from '@iris/protocol';
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

/** A socket here. What its bearer says is signed with what it says, so it is a stranger's until the gateway has let its agent in. */
interface Come {
  readonly address: string;
  /** Tick at which it came. */
  readonly since: number;
  heard: number;
  /** Of what it said before its agent was let in. */
  early_bytes: number;
  bridge: Bridge | undefined;
}

/** @param accept opens an agent's link on this edge */
export function relayDoor(edge: EdgeContext, accept: (socket: Socket, opening: Opening) => SocketEvents): RelayDoor {
  const bridges = new Map<string, Bridge>();
  const sockets = new Map<Socket, Come>();
  /** Oldest first. */
  const strangers = new Map<Socket, Come>();
  const known = (socket: Socket) => {
    const come = strangers.get(socket);
    if (come === undefined) return;
    strangers.delete(socket);
    edge.addresses.leave(come.address);
  };
  const welcome = (one: Bridge) => {
    for (const [socket, { bridge: its }] of strangers)
      if (its === one) {
        known(socket);
        socket.welcome();
      }
  };
  const refused = (socket: Socket, reason: CloseReason, text: string): SocketEvents => {
    socket.close(closeCodes[reason], text);
    return closed;
  };

  return {
    accept(socket, { token: bearer, address }) {
      const token = bearer === undefined ? undefined : relayToken(bearer, Math.floor(edge.clock.now() / 1_000));
      if (token === undefined) return refused(socket, 'auth', 'unauthorized');
      if (edge.draining) return refused(socket, 'restarting', 'this edge goes');
      if (!edge.addresses.enter(address)) {
        edge.meters.limited.add(1, { what: 'socket' });
        return refused(socket, 'full', 'too many sockets that have not said hello');
      }
      const come: Come = { address, since: edge.time.tick, heard: edge.time.tick, early_bytes: 0, bridge: undefined };
      sockets.set(socket, come);
      strangers.set(socket, come);
      let one = bridges.get(token);
      if (one === undefined) {
        one = bridge({
          token,
          opens: (inner, given) => accept(inner, { path: '/agent', address, token: given }),
          clock: edge.clock,
          random: () => edge.random.unit(),
          log: edge.log,
          welcomed: () => welcome(one!),
          ended: () => {
            if (bridges.get(token) === one) bridges.delete(token);
          },
        });
        bridges.set(token, one);
      }
      const mine = one;
      come.bridge = mine;
      if (mine.proven) welcome(mine);
      const end: RelayEnd = {
        send: (text) => socket.send(encoder.encode(text)),
        close: (code, reason) => socket.close(code, reason),
      };
      mine.attach(end);
      return {
        message(data, binary) {
          come.heard = edge.time.tick;
          if (binary) return socket.close(closeCodes.protocol, 'binary frames are not spoken here');
          if (strangers.has(socket)) {
            come.early_bytes += data.length;
            if (come.early_bytes > edge.config.waiting_bytes) return socket.close(closeCodes.rate, 'too much before its agent was let in');
          }
          mine.heard(end, decoder.decode(data));
        },
        pong() {
          come.heard = edge.time.tick;
        },
        drained() {},
        closed() {
          known(socket);
          sockets.delete(socket);
          mine.detach(end);
        },
      };
    },
    tick() {
      const { tick } = edge.time;
      for (const [socket, { since }] of strangers) {
        if (tick - since < toTicks(edge.config.hello_ms)) break;
        edge.meters.closed.add(1, { code: closeCodes.no_hello });
        socket.close(closeCodes.no_hello, 'its agent was not let in');
      }
      if (tick % toTicks(ping_ms) !== 0) return;
      for (const [socket, { heard }] of sockets) {
        if (tick - heard > toTicks(silent_ms)) socket.terminate();
        else socket.ping(nothing);
      }
    },
    stop() {
      for (const socket of sockets.keys()) socket.close(closeCodes.restarting, 'this edge goes; connect again');
      for (const one of bridges.values()) one.stop();
    },
  };
}
