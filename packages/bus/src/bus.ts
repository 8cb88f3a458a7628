/**
 * What carries frames between processes. Guarantees: at most once; in order from one publisher to one subscriber while
 * the connection lasts. It refuses to know what it carries, who is a tenant, and whether anything arrived: loss is
 * noticed by cursors and by unanswered requests, never here.
 */
export interface Bus {
  publish(subject: string, data: Uint8Array): void;
  /** The handler must not keep `data` past its return unless it copies it. It must not throw. */
  subscribe(subject: string, handler: (data: Uint8Array) => void): Subscription;
  /** Rejects with {@link NoResponders} at once when nobody serves the subject, with {@link BusTimeout} after `timeout_ms`. */
  request(subject: string, data: Uint8Array, options: { timeout_ms: number }): Promise<Uint8Array>;
  serve(subject: string, handler: (data: Uint8Array) => Uint8Array): Subscription;
  /** Resolves when everything published or subscribed so far has reached the broker. */
  flush(): Promise<void>;
  /** Whether the broker can be reached now; what is published meanwhile may be lost. */
  readonly connected: boolean;
  /** Called at each change of {@link connected}; returns a function that ends it. */
  onConnected(listener: (connected: boolean) => void): () => void;
  close(): Promise<void>;
}

export interface Subscription {
  end(): void;
}

export class NoResponders extends Error {
  override readonly name = 'NoResponders';
}
export class BusTimeout extends Error {
  override readonly name = 'BusTimeout';
}
