import type { HttpRequest, HttpResponse } from 'uWebSockets.js';

/** One request for a file, and its answer. Once the peer is gone, everything does nothing. */
export interface HttpExchange {
  readonly method: 'get' | 'head' | 'put';
  readonly path: string;
  readonly range: string;
  readonly content_range: string;
  /** What the peer says the body has; undefined when it does not. */
  readonly length: number | undefined;
  /** The body at the pace of whoever reads it. Fails when the peer leaves. */
  body(): AsyncIterable<Uint8Array>;
  /** Without a body. */
  reply(status: string, headers?: readonly (readonly [string, string])[]): void;
  /** With `length` bytes, at the peer's pace. Resolves when they are handed over, or the peer is gone; rejects when they end short. */
  stream(status: string, headers: readonly (readonly [string, string])[], length: number, bytes: AsyncIterable<Uint8Array>): Promise<void>;
  /** Drop the connection: nothing more of the body is read, and nothing is answered. */
  cut(): void;
}

/** Bytes of a body that may wait before the peer is asked to stop. */
const waiting_bytes = 512 * 1024;

export function httpExchange(res: HttpResponse, req: HttpRequest, method: HttpExchange['method']): HttpExchange {
  const said = req.getHeader('content-length');
  const [path, range, content_range] = [req.getUrl(), req.getHeader('range'), req.getHeader('content-range')];
  let over = false;
  let aborted = false;
  let wake: (() => void) | undefined;
  const signal = () => {
    wake?.();
    wake = undefined;
  };
  const changed = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  const chunks: Uint8Array[] = [];
  let waiting = 0;
  let paused = false;
  let ended = false;
  res.onAborted(() => {
    over = true;
    aborted = true;
    signal();
  });
  if (method === 'put')
    res.onData((chunk, last) => {
      if (chunk.byteLength > 0) chunks.push(new Uint8Array(chunk.slice(0)));
      waiting += chunk.byteLength;
      ended = last;
      if (waiting > waiting_bytes && !paused && !last) {
        paused = true;
        res.pause();
      }
      signal();
    });
  const head = (status: string, headers: readonly (readonly [string, string])[]) => {
    res.writeStatus(status);
    for (const [name, value] of headers) res.writeHeader(name, value);
  };

  return {
    method,
    path,
    range,
    content_range,
    length: /^\d+$/.test(said) ? Number(said) : undefined,
    async *body() {
      for (;;) {
        const chunk = chunks.shift();
        if (chunk !== undefined) {
          waiting -= chunk.byteLength;
          if (paused && waiting < waiting_bytes / 2 && !over) {
            paused = false;
            res.resume();
          }
          yield chunk;
        } else if (aborted) throw new Error('the peer is gone');
        else if (ended) return;
        else await changed();
      }
    },
    reply(status, headers = []) {
      if (over) return;
      over = true;
      // What of the body has not come yet is not waited for.
      const close = method === 'put' && !ended;
      res.cork(() => {
        head(status, headers);
        res.end('', close);
      });
    },
    cut() {
      if (over) return;
      over = true;
      aborted = true;
      chunks.length = 0;
      signal();
      res.close();
    },
    async stream(status, headers, length, bytes) {
      if (over) return;
      if (method === 'head' || length === 0) {
        over = true;
        res.cork(() => {
          head(status, headers);
          if (length === 0) res.end();
          else res.endWithoutBody(length);
        });
        return;
      }
      let rest: { readonly chunk: Uint8Array; readonly from: number; readonly resolve: () => void } | undefined;
      // What did not go out at once goes on from where the line stopped, in the very call that says there is room.
      res.onWritable((offset) => {
        if (rest === undefined || over) return true;
        const [ok, done] = res.tryEnd(rest.chunk.subarray(offset - rest.from), length);
        if (done) over = true;
        if (ok || done) {
          const { resolve } = rest;
          rest = undefined;
          resolve();
        }
        return ok;
      });
      const give = (chunk: Uint8Array) =>
        new Promise<void>((resolve) => {
          const from = res.getWriteOffset();
          wake = resolve;
          res.cork(() => {
            const [ok, done] = res.tryEnd(chunk, length);
            if (done) over = true;
            if (ok || done) resolve();
            else rest = { chunk, from, resolve };
          });
        });
      res.cork(() => head(status, headers));
      try {
        for await (const chunk of bytes) {
          await give(chunk);
          if (over) return;
        }
      } finally {
        if (!over) {
          // It ended short: the peer must not take it for whole.
          over = true;
          res.close();
        }
      }
    },
  };
}
