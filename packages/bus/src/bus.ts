/**
 * What carries frames between processes. Guarantees: at most once; in order from one publisher to one subscriber while
 * the connection lasts. It refuses to know what it carries, who is a tenant, and whether anything arrived: loss is
 * noticed by cursors and by unanswered requests, never here.
 *
 * One subject is either published and subscribed, or requested and served; never both.
 */
export interface Bus {
  /**
   * Gone at once: nothing waits for it. While the broker cannot be reached it is dropped, not kept: what would be waiting
   * is old by the time the connection is back, everything that matters is sent again or repaired by those who miss it,
   * and a queue would grow without bound exactly when memory is short.
   * @throws RangeError when `data` is longer than {@link busBytesMax}
   */
  publish(subject: string, data: Uint8Array): void;
  /** The handler must not keep `data` past its return unless it copies it. It must not throw. */
  subscribe(subject: string, handler: (data: Uint8Array) => void): Subscription;
  /**
   * Rejects with {@link NoResponders} at once when nobody serves the subject, with {@link BusTimeout} after `timeout_ms`
   * (also when the broker cannot be reached: that says nothing about who serves), with {@link BusClosed} after `close`.
   */
  request(subject: string, data: Uint8Array, options: { timeout_ms: number }): Promise<Uint8Array>;
  /**
   * Meant for one server per subject: of several, each gets the request and the first answer counts.
   * The handler must not throw, and answers at most {@link answerBytesMax} bytes.
   */
  serve(subject: string, handler: (data: Uint8Array) => Uint8Array): Subscription;
  /** Resolves when everything published or subscribed so far has reached the broker; {@link BusTimeout} when it cannot be reached within 2 s. */
  flush(): Promise<void>;
  /** Whether the broker can be reached now; what is published meanwhile is lost. */
  readonly connected: boolean;
  /** Called at each change of {@link connected}; returns a function that ends it. */
  onConnected(listener: (connected: boolean) => void): () => void;
  close(): Promise<void>;
}

export interface Subscription {
  end(): void;
}

/** Bytes of one message: room for the largest agent frame and its record several times over. */
export const busBytesMax = 8 * 1024 * 1024;
/** Bytes of one answer to a request: answers here say "accepted". */
export const answerBytesMax = 512 * 1024;

export class NoResponders extends Error {
  override readonly name = 'NoResponders';
}
export class BusTimeout extends Error {
  override readonly name = 'BusTimeout';
}
export class BusClosed extends Error {
  override readonly name = 'BusClosed';
}
