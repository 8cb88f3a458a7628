/** One WebSocket to the gateway, seen from the agent. On a closed one every call does nothing. */
export interface LinkSocket {
  send(text: string): void;
  close(code: number, reason: string): void;
  /** Drop the connection without a handshake: the peer is taken for dead. */
  terminate(): void;
  /** Bytes that are sent but not yet taken by the network. */
  buffered(): number;
}

/** What happens on it. Never called before {@link Connect} has returned. */
export interface LinkSocketEvents {
  open(): void;
  /** One text frame. */
  message(text: string): void;
  /** Once, also when it never opened. 1006: without a close frame. A refused token is 4401, whether it came as HTTP 401 or as a close. */
  closed(code: number, reason: string): void;
}

/** How a link reaches the gateway. The default dials with `ws`; a test brings sockets in memory. */
export type Connect = (url: string, options: { token: string; subprotocol: string }, events: LinkSocketEvents) => LinkSocket;

export const subprotocol = 'iris-agent.v1';
