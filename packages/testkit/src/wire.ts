import WebSocket from 'ws';

/** The client's end of one WebSocket, whatever carries it. Everything on a closed one does nothing. */
export interface Wire {
  /** Bytes go as a binary message unless `as` says otherwise. */
  send(data: string | Uint8Array, as?: 'text' | 'binary'): void;
  /** A WebSocket pong: the answer to a ping, when the test gives it itself. */
  pong(data: Uint8Array): void;
  /** A WebSocket ping of the client's own. */
  ping(): void;
  close(code?: number, reason?: string): void;
  /** Drop the connection without a close frame. `silent`: the server is not told either, as when a phone leaves the network. */
  cut(options?: { silent?: boolean }): void;
  /** Stop and go on reading: what arrives meanwhile fills the pipe. */
  pause(): void;
  resume(): void;
}

export interface WireEvents {
  message(data: string | Uint8Array): void;
  ping(data: Uint8Array): void;
  /** Once. 1006 when there was no close frame. */
  closed(code: number, reason: string): void;
}

/** Opens one; rejects when it is refused before it is a WebSocket. */
export type Dial = (events: WireEvents) => Promise<Wire>;

const text = new TextDecoder('utf-8', { fatal: true });

/** Dial a real server. */
export function dialUrl(url: string, options: { headers?: Record<string, string>; protocols?: string[]; origin?: string } = {}): Dial {
  return (events) =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(url, options.protocols ?? [], {
        perMessageDeflate: false,
        autoPong: false,
        maxPayload: 0,
        ...(options.headers ? { headers: options.headers } : {}),
        ...(options.origin === undefined ? {} : { origin: options.origin }),
      });
      let opened = false;
      socket.on('error', (error) => {
        if (!opened) reject(error);
      });
      socket.on('message', (data: Buffer, binary: boolean) => events.message(binary ? new Uint8Array(data) : text.decode(data)));
      socket.on('ping', (data: Buffer) => events.ping(new Uint8Array(data)));
      socket.on('close', (code, reason) => {
        if (opened) events.closed(code, reason.toString());
      });
      const open = () => socket.readyState === WebSocket.OPEN;
      socket.on('open', () => {
        opened = true;
        resolve({
          send: (data, as = typeof data === 'string' ? 'text' : 'binary') => {
            if (open()) socket.send(data, { binary: as === 'binary' }, () => {});
          },
          pong: (data) => {
            if (open()) socket.pong(data, undefined, () => {});
          },
          ping: () => {
            if (open()) socket.ping(undefined, undefined, () => {});
          },
          close: (code, reason) => socket.close(code, reason),
          cut: () => socket.terminate(),
          pause: () => socket.pause(),
          resume: () => socket.resume(),
        });
      });
    });
}
