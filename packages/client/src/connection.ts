import type { DownFrame, DownFrameOf, ErrorCode, RequestId, UpFrame } from '@iris/protocol';
import type { ClientClock, SocketLike } from './socket.js';

/** A request that the gateway answered with `error`, or that can no longer be answered (`code: 'closed'`). */
export class IrisError extends Error {
  override readonly name = 'IrisError';
  constructor(
    readonly code: ErrorCode | 'closed',
    message: string,
    /** Milliseconds, with `rate_limited`. */
    readonly retry_after_ms?: number,
  ) {
    super(message);
  }
}

export type ConnectionState =
  | { readonly kind: 'connecting'; readonly attempt: number }
  | { readonly kind: 'online' }
  | { readonly kind: 'waiting'; readonly attempt: number; readonly retry_in_ms: number }
  /** For good: the token was refused or revoked, or another connection of this device took over, or `close` was called. */
  | { readonly kind: 'ended'; readonly code: number; readonly reason: string };

export interface ConnectionOptions {
  readonly url: string;
  readonly socket: (url: string) => SocketLike;
  readonly clock: ClientClock;
  /** The payload of `hello`, made anew for each connection. */
  readonly hello: () => UpFrame['payload'];
  readonly onState: (state: ConnectionState) => void;
  /** Every frame that answers no request of {@link Connection.request}, and every answer that is a frame of the lane's order. */
  readonly onFrame: (frame: DownFrame) => void;
  /** Bytes of a file that is pulled. */
  readonly onBytes: (bytes: Uint8Array) => void;
  /** After `hello.ack`, before anything queued is sent. */
  readonly onHello: (ack: DownFrameOf<'hello.ack'>) => void;
}

type Request = { readonly type: UpFrame['type']; readonly chat_id?: string; readonly thread_id?: string | null; readonly payload: object };

export interface Connection {
  open(): void;
  /** Resolves with the answering frame. Rejects with {@link IrisError}; `closed` when the connection went before the answer. */
  request(frame: Request): Promise<DownFrame>;
  /** Without waiting for an answer; dropped while not online. */
  tell(frame: Request): void;
  /** Bytes of a file. False when the line is another one than `line`, or none. */
  bytes(data: Uint8Array<ArrayBuffer>, line: number): boolean;
  /** Bytes that wait to be sent. */
  readonly buffered: number;
  /** Counts the lines, so that what belongs to one is not said on another. */
  readonly line: number;
  close(): void;
  readonly online: boolean;
}

/** Closing codes after which coming back cannot help. */
const final = new Set([4400, 4401, 4403, 4409]);
const retry = { first_ms: 500, most_ms: 30_000, afterRestart_ms: 2_000 } as const;
/** Nothing heard for this long, though pings went out: the line is dead. */
const silence = { ping_ms: 15_000, dead_ms: 40_000 } as const;

/** One device's line to the gateway: says hello, comes back after losses with growing, jittered pauses, matches answers to requests. */
export function connection(options: ConnectionOptions): Connection {
  const { clock } = options;
  let socket: SocketLike | undefined;
  let online = false;
  let ended = false;
  let attempt = 0;
  let line = 0;
  let nextId = 1;
  let heardAt = 0;
  let timer: { cancel(): void } | undefined;
  const waiting = new Map<RequestId, { resolve(frame: DownFrame): void; reject(error: IrisError): void }>();

  const write = (frame: object): void => socket?.send(JSON.stringify({ v: 1, ...frame }));

  function connect(): void {
    options.onState({ kind: 'connecting', attempt });
    const opened = options.socket(options.url);
    opened.binaryType = 'arraybuffer';
    socket = opened;
    line++;
    opened.onopen = () => {
      heardAt = clock.now();
      write({ type: 'hello', payload: options.hello() });
    };
    opened.onmessage = (event) => {
      if (socket !== opened) return;
      if (typeof event.data === 'string') heard(event.data);
      else {
        heardAt = clock.now();
        options.onBytes(new Uint8Array(event.data as ArrayBuffer));
      }
    };
    opened.onerror = () => {};
    opened.onclose = (event) => {
      if (socket === opened) lost(event.code, event.reason);
    };
  }

  function heard(text: string): void {
    heardAt = clock.now();
    const frame = JSON.parse(text) as DownFrame;
    if (frame.type === 'hello.ack') {
      online = true;
      attempt = 0;
      options.onState({ kind: 'online' });
      options.onHello(frame);
      watch();
      return;
    }
    if (frame.id !== undefined) {
      const request = waiting.get(frame.id);
      waiting.delete(frame.id);
      if (frame.type === 'error') request?.reject(new IrisError(frame.payload.code, frame.payload.message, frame.payload.retry_after_ms));
      else request?.resolve(frame);
    }
    options.onFrame(frame);
  }

  /** The browser answers the gateway's pings by itself and tells nobody: liveness seen from here needs pings of our own. */
  function watch(): void {
    timer?.cancel();
    timer = clock.after(silence.ping_ms, () => {
      if (clock.now() - heardAt >= silence.dead_ms) return lost(1006, 'silent');
      write({ type: 'ping', payload: { ts: clock.now() } });
      watch();
    });
  }

  function lost(code: number, reason: string): void {
    const was = socket;
    socket = undefined;
    online = false;
    timer?.cancel();
    if (was) was.onclose = null;
    was?.close();
    for (const request of waiting.values()) request.reject(new IrisError('closed', 'the connection was lost before the answer'));
    waiting.clear();
    if (ended) return;
    if (final.has(code)) {
      ended = true;
      options.onState({ kind: 'ended', code, reason });
      return;
    }
    const grown = Math.min(retry.most_ms, retry.first_ms * 2 ** attempt);
    // 1012 means that the edge goes away while others serve: come back soon, spread out.
    const most = code === 1012 ? retry.afterRestart_ms : grown;
    const pause = Math.round(most * (0.5 + clock.random() / 2));
    attempt++;
    options.onState({ kind: 'waiting', attempt, retry_in_ms: pause });
    timer = clock.after(pause, connect);
  }

  return {
    open: connect,
    request(frame) {
      if (!online) return Promise.reject(new IrisError('closed', 'not connected'));
      const id = nextId++;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        write({ ...frame, id });
      });
    },
    tell(frame) {
      if (online) write(frame);
    },
    bytes(data, of) {
      if (!online || of !== line) return false;
      socket?.send(data);
      return true;
    },
    get buffered() {
      return socket?.bufferedAmount ?? 0;
    },
    get line() {
      return line;
    },
    close() {
      ended = true;
      const was = socket;
      lost(1000, 'closed by the app');
      was?.close(1000, 'bye');
      options.onState({ kind: 'ended', code: 1000, reason: 'closed by the app' });
    },
    get online() {
      return online;
    },
  };
}
