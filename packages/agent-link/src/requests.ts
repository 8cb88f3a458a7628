import type { ErrorCode } from '@iris/protocol';
import type { Clock, Timer } from './clock.js';
import type { Down, Up } from './frame.js';
import type { Journal } from './journal.js';

/** A request that the gateway refused (`code` is the protocol's), or that got no answer (`timeout`, `closed`). */
export class LinkError extends Error {
  override readonly name = 'LinkError';
  constructor(
    readonly code: ErrorCode | 'timeout' | 'closed',
    message: string,
    /** Milliseconds, with `rate_limited`. */
    readonly retry_after_ms?: number,
  ) {
    super(message);
  }
}

/** Questions to the gateway that it answers with the same `id`. */
export interface Requests {
  /** `durable`: the request has an effect and is kept until acked; else it is asked again after a reconnect. Rejects with {@link LinkError}. */
  ask(frame: Up, options: { durable: boolean }): Promise<Down>;
  /** True when the frame was an answer. */
  answered(frame: Down): boolean;
  /** The link is up again. */
  resumed(): void;
  /** Nothing will be answered any more. */
  close(): void;
}

const answer_ms = 60_000;

export function requests(options: { journal: Journal; clock: Clock; newId: (prefix: string) => string }): Requests {
  const { journal, clock, newId } = options;
  const open = new Map<string, { frame?: Up; resolve(frame: Down): void; reject(error: LinkError): void; timer: Timer }>();
  let closed = false;

  return {
    ask(frame, { durable }) {
      const answer = new Promise<Down>((resolve, reject) => {
        if (closed) return reject(new LinkError('closed', 'the agent has stopped'));
        const id = newId('r');
        const timer = clock.after(answer_ms, () => {
          open.delete(id);
          reject(new LinkError('timeout', `${frame.type}: no answer within ${answer_ms} ms`));
        });
        const asked = { ...frame, id };
        open.set(id, { ...(durable ? {} : { frame: asked }), resolve, reject, timer });
        if (durable) journal.keep(asked);
        else journal.say(asked);
      });
      // Whoever does not wait for the answer shall not be ended by its failure.
      answer.catch(() => {});
      return answer;
    },
    answered(frame) {
      if (typeof frame.id !== 'string') return false;
      const request = open.get(frame.id);
      if (!request) return false;
      open.delete(frame.id);
      request.timer.cancel();
      if (frame.type === 'error') request.reject(new LinkError(frame.payload.code, frame.payload.message, frame.payload.retry_after_ms));
      else request.resolve(frame);
      return true;
    },
    resumed() {
      for (const { frame } of open.values()) if (frame) journal.say(frame);
    },
    close() {
      closed = true;
      for (const request of open.values()) {
        request.timer.cancel();
        request.reject(new LinkError('closed', 'the agent has stopped'));
      }
      open.clear();
    },
  };
}
