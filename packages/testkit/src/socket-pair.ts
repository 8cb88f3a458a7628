import type { Opening, Socket, SocketEvents, SocketGroups } from '@iris/edge';
import type { Wire, WireEvents } from './wire.js';

/** How one server's sockets behave. */
export interface SocketPairOptions {
  /** Bytes under way or waiting in the client's kernel before the server's own buffer begins to fill. Default 64 KiB. */
  readonly window_bytes?: number;
  /** Bytes of one message from the client; larger closes with 1009. */
  readonly max_bytes?: number;
  /** Runs `deliver` later, once. Calls for one direction of one socket must run in the order they were made. */
  readonly carry: (direction: Direction, deliver: () => void) => void;
}
export type Direction = 'to_server' | 'to_client';

/** The sockets of one server, in memory: groups as uWebSockets.js has them, and pipes that fill when a client stops reading. */
export interface SocketPairs extends SocketGroups {
  /** A client connects; `accept` is the server's side of it. */
  open(opening: Opening, accept: (socket: Socket, opening: Opening) => SocketEvents, client: WireEvents): Wire;
  /** As SIGKILL of the server: every client sees 1006, the server's side hears nothing. */
  kill(): void;
  /** Sockets that are open on the server's side. */
  readonly count: number;
  /** Bytes in the buffers of all of them. */
  readonly buffered: number;
}

type Outgoing = { readonly bytes: number } & (
  | { readonly kind: 'message'; readonly data: string | Uint8Array }
  | { readonly kind: 'ping'; readonly data: Uint8Array }
  | { readonly kind: 'close'; readonly code: number; readonly reason: string }
);
interface Member {
  send(data: Uint8Array): void;
}

const utf8 = new TextEncoder();
const text = new TextDecoder('utf-8', { fatal: true });

export function socketPairs(options: SocketPairOptions): SocketPairs {
  const groups = new Map<string, Set<Member>>();
  const live = new Set<{ vanish(): void; buffered(): number }>();
  const publish = (group: string, data: Uint8Array, except?: Member) => {
    for (const member of [...(groups.get(group) ?? [])]) if (member !== except) member.send(data);
  };
  const leave = (group: string, member: Member) => {
    const members = groups.get(group);
    members?.delete(member);
    if (members?.size === 0) groups.delete(group);
  };

  const open: SocketPairs['open'] = (opening, accept, client) => {
    let serverOpen = true;
    let clientOpen = true;
    let events: SocketEvents | undefined;
    const joined = new Set<string>();
    const pipe = outgoingPipe(options.window_bytes ?? 64 * 1024, (item) => {
      if (!clientOpen) return;
      if (item.kind === 'message') client.message(item.data);
      else if (item.kind === 'ping') client.ping(item.data);
      else clientGone(item.code, item.reason);
    });
    const serverGone = (tell: boolean) => {
      if (!serverOpen) return;
      serverOpen = false;
      for (const group of joined) leave(group, member);
      live.delete(self);
      if (tell) events?.closed();
    };
    const clientGone = (code: number, reason: string) => {
      if (!clientOpen) return;
      clientOpen = false;
      client.closed(code, reason);
    };
    const say = (item: Outgoing) => {
      if (!serverOpen) return;
      pipe.put(item, {
        carry: (deliver) => options.carry('to_client', () => clientOpen && deliver()),
        drained: () => options.carry('to_server', () => serverOpen && events?.drained()),
      });
    };
    const socket: Socket = {
      send: (data, binary) => say({ kind: 'message', data: binary ? data.slice() : text.decode(data), bytes: data.length + 4 }),
      ping(data) {
        if (data.length > 125) throw new Error('a ping carries at most 125 bytes');
        say({ kind: 'ping', data: data.slice(), bytes: data.length + 2 });
      },
      welcome() {},
      // As uWebSockets.js has it, `closed` comes before `close` and `terminate` return.
      close(code, reason) {
        say({ kind: 'close', code, reason, bytes: 4 });
        serverGone(true);
      },
      terminate() {
        if (!serverOpen) return;
        pipe.drop();
        serverGone(true);
        options.carry('to_client', () => clientGone(1006, ''));
      },
      buffered: () => pipe.buffered(),
      join(group) {
        if (!serverOpen) return;
        joined.add(group);
        const members = groups.get(group);
        if (members) members.add(member);
        else groups.set(group, new Set([member]));
      },
      leave(group) {
        joined.delete(group);
        leave(group, member);
      },
      publish: (group, data) => publish(group, data, member),
    };
    const member: Member = { send: (data) => socket.send(data) };
    const self = {
      buffered: () => pipe.buffered(),
      vanish() {
        serverGone(false);
        pipe.drop();
        clientGone(1006, '');
      },
    };
    live.add(self);
    events = accept(socket, opening);
    if (!serverOpen) events.closed();

    /** As uWebSockets.js has it, bytes are the server's during the call only: afterwards others stand there. */
    const lent = (bytes: Uint8Array, give: () => void) => {
      give();
      bytes.fill(0xff);
    };
    const toServer = (deliver: (events: SocketEvents) => void) => {
      if (clientOpen) options.carry('to_server', () => serverOpen && events && deliver(events));
    };
    return {
      send(data, as = typeof data === 'string' ? 'text' : 'binary') {
        const bytes = typeof data === 'string' ? utf8.encode(data) : data.slice();
        toServer((server) => {
          if (options.max_bytes !== undefined && bytes.length > options.max_bytes) socket.close(1009, '');
          else lent(bytes, () => server.message(bytes, as === 'binary'));
        });
      },
      pong(data) {
        const bytes = data.slice();
        toServer((server) => lent(bytes, () => server.pong(bytes)));
      },
      // As the real server has it: what a client's ping says is its own, and that it came is a sign of life.
      ping: () => toServer((server) => server.pong(new Uint8Array())),
      close(code = 1000, reason = '') {
        toServer(() => serverGone(true));
        clientGone(code, reason);
      },
      cut({ silent } = {}) {
        if (!silent) toServer(() => serverGone(true));
        clientGone(1006, '');
      },
      pause: () => pipe.pause(),
      resume: () => pipe.resume(),
    };
  };

  return {
    open,
    publish: (group, data) => publish(group, data),
    kill() {
      for (const one of [...live]) one.vanish();
      groups.clear();
    },
    get count() {
      return live.size;
    },
    get buffered() {
      return [...live].reduce((sum, one) => sum + one.buffered(), 0);
    },
  };
}

interface Way {
  carry(deliver: () => void): void;
  drained(): void;
}

/** Server to client: a buffer in the server, a window of bytes under way, and what the client has not read yet. */
function outgoingPipe(window: number, read: (item: Outgoing) => void) {
  let queued: Outgoing[] = [];
  let queuedBytes = 0;
  let flightBytes = 0;
  let unread: Outgoing[] = [];
  let reading = true;
  let way: Way | undefined;

  const move = () => {
    while (queued.length > 0 && (flightBytes === 0 || flightBytes + queued[0]!.bytes <= window)) {
      const item = queued.shift()!;
      queuedBytes -= item.bytes;
      flightBytes += item.bytes;
      way?.carry(() => {
        unread.push(item);
        take();
      });
    }
  };
  const take = () => {
    while (reading && unread.length > 0) {
      const item = unread.shift()!;
      flightBytes -= item.bytes;
      read(item);
      if (queued.length === 0) continue;
      move();
      if (queued.length === 0) way?.drained();
    }
  };
  return {
    put(item: Outgoing, by: Way) {
      way = by;
      queued.push(item);
      queuedBytes += item.bytes;
      move();
    },
    drop() {
      queued = [];
      queuedBytes = 0;
      unread = [];
    },
    buffered: () => queuedBytes,
    pause: () => {
      reading = false;
    },
    resume() {
      reading = true;
      take();
    },
  };
}
