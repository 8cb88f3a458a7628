import type { Clock, Timer } from '@iris/runtime';

/** Ends a request of which nothing was heard for too long. */
export interface Silence {
  /** Aborted when the given one is, or when it was silent for too long. */
  readonly signal: AbortSignal;
  /** Something came. */
  heard(): void;
  /** The same chunks, each of which was heard. */
  through(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  end(): void;
}

export function silence(clock: Clock, ms: number, outer: AbortSignal, why: () => Error): Silence {
  const abort = new AbortController();
  const follow = () => abort.abort(outer.reason);
  if (outer.aborted) follow();
  else outer.addEventListener('abort', follow, { once: true });
  const arm = (): Timer => clock.after(ms, () => abort.abort(why()));
  let timer = arm();
  const heard = () => {
    timer.cancel();
    timer = arm();
  };
  return {
    signal: abort.signal,
    heard,
    async *through(chunks) {
      for await (const chunk of chunks) {
        heard();
        yield chunk;
      }
    },
    end() {
      timer.cancel();
      outer.removeEventListener('abort', follow);
    },
  };
}
