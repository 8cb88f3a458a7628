import type { Connect, LinkSocketEvents } from '../socket.js';

/** The gateway's end of one connection. */
export interface ServerEnd {
  send(text: string): void;
  close(code: number, reason: string): void;
}
export interface ServerEvents {
  message(text: string): void;
  closed(): void;
}

export interface MemoryNetOptions {
  /** Runs `deliver` later, once; the order of the calls is the order they are delivered in. */
  readonly carry: (deliver: () => void) => void;
  /** Which way's next frame goes first when both have one; default: towards the gateway. */
  readonly upFirst?: () => boolean;
  accept(end: ServerEnd, token: string): ServerEvents | { refuse: number };
}

/** Connections in memory: frames of one direction stay in order, and a cut loses what is under way, both ways. */
export interface MemoryNet {
  readonly connect: Connect;
  /** Cut every connection without a close frame, now. */
  cut(): void;
  /** After so many more delivered frames, cut. */
  cutAfter(frames: number): void;
  /** Nothing arrives any more on what is open, either way, and nobody is told. */
  blackhole(): void;
  /** Connections that open from now on are like that as well. */
  mute: boolean;
  /** Bytes that the agent's sockets say are waiting. */
  buffered: number;
  readonly dials: number;
  /** Frames delivered so far, both ways. */
  readonly delivered: number;
}

interface Pipe {
  readonly up: (() => void)[];
  readonly down: (() => void)[];
  open: boolean;
  deaf: boolean;
  cut(): void;
}

export function memoryNet(options: MemoryNetOptions): MemoryNet {
  const pipes = new Set<Pipe>();
  let dials = 0;
  let delivered = 0;
  let cutAt = Number.POSITIVE_INFINITY;

  const step = (pipe: Pipe) => {
    if (!pipe.open || pipe.deaf) return;
    const upFirst = options.upFirst?.() ?? true;
    const [first, second] = upFirst ? [pipe.up, pipe.down] : [pipe.down, pipe.up];
    const deliver = first.shift() ?? second.shift();
    deliver?.();
    delivered++;
    if (delivered >= cutAt) {
      cutAt = Number.POSITIVE_INFINITY;
      net.cut();
    }
  };

  const connect: Connect = (_url, { token }, events: LinkSocketEvents) => {
    dials++;
    const put = (queue: (() => void)[], deliver: () => void) => {
      if (!pipe.open) return;
      queue.push(deliver);
      options.carry(() => step(pipe));
    };
    let server: ServerEvents | undefined;
    const pipe: Pipe = {
      up: [],
      down: [],
      open: true,
      deaf: net.mute,
      cut() {
        end(1006, '');
      },
    };
    const end = (code: number, reason: string) => {
      if (!pipe.open) return;
      pipe.open = false;
      pipes.delete(pipe);
      server?.closed();
      options.carry(() => events.closed(code, reason));
    };
    pipes.add(pipe);
    options.carry(() => {
      if (!pipe.open) return;
      const accepted = options.accept(
        {
          send: (text) => put(pipe.down, () => events.message(text)),
          close: (code, reason) => put(pipe.down, () => end(code, reason)),
        },
        token,
      );
      if ('refuse' in accepted) return end(accepted.refuse, 'refused');
      server = accepted;
      events.open();
    });
    return {
      send: (text) => put(pipe.up, () => server?.message(text)),
      close() {
        if (!pipe.open) return;
        pipe.open = false;
        pipes.delete(pipe);
        server?.closed();
      },
      terminate: () => pipe.cut(),
      buffered: () => net.buffered,
    };
  };

  const net: MemoryNet = {
    mute: false,
    connect,
    cut() {
      for (const pipe of [...pipes]) pipe.cut();
    },
    cutAfter(frames) {
      cutAt = delivered + frames;
    },
    blackhole() {
      for (const pipe of pipes) pipe.deaf = true;
    },
    buffered: 0,
    get dials() {
      return dials;
    },
    get delivered() {
      return delivered;
    },
  };
  return net;
}
