import type { Socket, SocketEvents, SocketGroups } from '../socket.js';

/** A frame as a test looks at it. */
export interface Heard {
  readonly type: string;
  readonly id?: number | string;
  readonly cursor?: number;
  readonly chat_id?: string;
  readonly seq?: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test names the fields it looks at
  readonly payload: any;
}

export interface FakeSocket extends Socket {
  /** What has reached the peer, in order. */
  readonly heard: Heard[];
  readonly pings: string[];
  readonly closedWith: { code: number; reason: string } | undefined;
  readonly terminated: boolean;
  readonly groups: ReadonlySet<string>;
  readonly peakBuffered: number;
  /** The peer stops reading: everything stays in the buffer. */
  stall(): void;
  resume(): void;
  /** The peer goes. */
  drop(): void;
  say(frame: unknown): void;
  raw(data: string | Uint8Array, binary?: boolean): void;
  pong(data?: string): void;
  /** Answer the last ping with what it said. */
  echo(): void;
  bind(events: SocketEvents): void;
}

export interface FakeSockets extends SocketGroups {
  open(): FakeSocket;
  /** Calls of a publish that includes everybody, and of one that leaves one out. */
  readonly publishes: number;
}

const utf8 = new TextEncoder();
const text = new TextDecoder('utf-8', { fatal: true });

export function fakeSockets(): FakeSockets {
  const members = new Map<string, Set<FakeSocket>>();
  let publishes = 0;
  const publish = (group: string, data: Uint8Array, except?: FakeSocket) => {
    publishes++;
    for (const one of [...(members.get(group) ?? [])]) if (one !== except) one.send(data);
  };

  const open = (): FakeSocket => {
    const heard: Heard[] = [];
    const pings: string[] = [];
    const groups = new Set<string>();
    let events: SocketEvents | undefined;
    let buffer: (() => number)[] = [];
    let bytes = 0;
    let peak = 0;
    let stalled = false;
    let closedWith: { code: number; reason: string } | undefined;
    let terminated = false;
    let isOpen = true;

    const put = (size: number, arrive: () => void) => {
      if (!isOpen) return;
      if (!stalled) return arrive();
      bytes += size;
      peak = Math.max(peak, bytes);
      buffer.push(() => {
        arrive();
        return size;
      });
    };
    const end = () => {
      isOpen = false;
      for (const group of groups) members.get(group)?.delete(socket);
      events?.closed();
    };
    const socket: FakeSocket = {
      heard,
      pings,
      groups,
      get closedWith() {
        return closedWith;
      },
      get terminated() {
        return terminated;
      },
      get peakBuffered() {
        return peak;
      },
      send(data, binary = false) {
        const kept = data.slice();
        put(kept.length, () => {
          if (!binary) heard.push(JSON.parse(text.decode(kept)) as Heard);
        });
      },
      ping(data) {
        if (data.length > 125) throw new Error('a ping carries at most 125 bytes');
        const said = text.decode(data);
        put(data.length, () => void pings.push(said));
      },
      welcome() {},
      close(code, reason) {
        if (!isOpen) return;
        closedWith = { code, reason };
        end();
      },
      terminate() {
        if (!isOpen) return;
        terminated = true;
        end();
      },
      buffered: () => bytes,
      join(group) {
        if (!isOpen) return;
        groups.add(group);
        const all = members.get(group) ?? new Set();
        members.set(group, all.add(socket));
      },
      leave(group) {
        groups.delete(group);
        members.get(group)?.delete(socket);
      },
      publish: (group, data) => publish(group, data, socket),
      stall() {
        stalled = true;
      },
      resume() {
        stalled = false;
        const waiting = buffer;
        buffer = [];
        for (const arrive of waiting) bytes -= arrive();
        if (waiting.length > 0 && isOpen) events?.drained();
      },
      drop() {
        if (isOpen) end();
      },
      say: (frame) => socket.raw(JSON.stringify(frame)),
      raw(data, binary = typeof data !== 'string') {
        if (!isOpen) throw new Error('the socket is closed');
        const sent = typeof data === 'string' ? utf8.encode(data) : data.slice();
        events!.message(sent, binary);
        // As a real server's buffer: gone when the call returns.
        sent.fill(0);
      },
      pong: (data = '') => events!.pong(utf8.encode(data)),
      echo: () => socket.pong(pings.at(-1)),
      bind(given) {
        events = given;
        if (!isOpen) given.closed();
      },
    };
    return socket;
  };
  return {
    open,
    publish: (group, data) => publish(group, data),
    get publishes() {
      return publishes;
    },
  };
}
