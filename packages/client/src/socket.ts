/** The part of a WebSocket that the client uses: the browser's own, Node's, or `ws` fit as they are. */
export interface SocketLike {
  readonly readyState: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  /** Set to `arraybuffer`. */
  binaryType?: string;
  /** Bytes that the network has not taken yet. */
  readonly bufferedAmount?: number;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: ((event: never) => void) | null;
}

/** Time as the client needs it; tests bring their own. */
export interface ClientClock {
  now(): number;
  after(ms: number, run: () => void): { cancel(): void };
  /** Between 0 and 1, for jitter. */
  random(): number;
}

export const browserClock: ClientClock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return { cancel: () => clearTimeout(timer) };
  },
  random: () => Math.random(),
};

export const browserSocket = (url: string): SocketLike => new WebSocket(url) as unknown as SocketLike;
