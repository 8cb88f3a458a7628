/**
 * What the edge needs of a WebSocket server, and nothing more. Implementations: `uws-server.ts` (uWebSockets.js) and the
 * testkit's socket pair. Closed sockets accept every call and do nothing.
 */
export interface Socket {
  /** Queue one frame. Never blocks, never drops: watch {@link buffered}. */
  send(data: Uint8Array, binary?: boolean): void;
  /** A WebSocket ping with at most 125 bytes, behind everything sent before. */
  ping(data: Uint8Array): void;
  /** The peer has said who it is: it is no stranger any more. */
  welcome(): void;
  /** Start the closing handshake. What was sent before still goes out. */
  close(code: number, reason: string): void;
  /** Drop the TCP connection. */
  terminate(): void;
  /** Bytes sent but not yet taken by the operating system. */
  buffered(): number;
  /** Join or leave a group: {@link publish} reaches every member. */
  join(group: string): void;
  leave(group: string): void;
  /** To every member of the group but this one (which need not be a member). Frames to one socket keep the order of all calls. */
  publish(group: string, data: Uint8Array): void;
}

/** The server as a whole: a publish that excludes nobody. */
export interface SocketGroups {
  publish(group: string, data: Uint8Array): void;
}

/** What a socket tells the connection behind it. `data` is valid during the call only. */
export interface SocketEvents {
  message(data: Uint8Array, binary: boolean): void;
  pong(data: Uint8Array): void;
  /** The buffer has become (nearly) empty again after having been filled. */
  drained(): void;
  closed(): void;
}

/** What is known when a socket opens. */
export interface Opening {
  readonly path: '/ws' | '/agent' | '/relay';
  /** The peer's address, after trusted proxies. */
  readonly address: string;
  /** Bearer token of the `Authorization` header. */
  readonly token?: string;
}
