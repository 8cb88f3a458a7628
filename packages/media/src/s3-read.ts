import type { Readable } from 'node:stream';
import type { Clock } from '@iris/runtime';
import { permits } from './permits.js';

/** Read at a time: a slow reader holds two of these, and no connection. */
const window_bytes = 1024 * 1024;
/** Whoever takes a window within this reads faster than windows can be asked for, and is given all that is left in one answer. */
const quick_ms = 50;
/** A connection waits no longer than twice this for a reader that was quick: then it is windows again. */
const hold_ms = 250;
/** Connections that readers may have at once; the others are for everything else. */
const flowsMax = 32;

/** Asks the server for the bytes `[from, to)` of one version of an object. */
export type GetRange = (key: string, etag: string | undefined, from: number, to: number) => Promise<Readable>;

/** Bytes of objects at the pace of who reads them: one window after another, the next one asked for while this one is used; or as they come. */
export function s3Reader(get: GetRange, clock: Clock) {
  const flows = permits(flowsMax);

  return async function* bytesOf(key: string, etag: string | undefined, from: number, to: number): AsyncGenerator<Uint8Array> {
    const windowAt = async (at: number): Promise<Uint8Array> => {
      const end = Math.min(to, at + window_bytes);
      const pieces: Uint8Array[] = [];
      for await (const piece of (await get(key, etag, at, end)) as AsyncIterable<Uint8Array>) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      if (bytes.byteLength !== end - at) throw new Error(`got ${bytes.byteLength} of ${end - at} bytes at ${at}`);
      return bytes;
    };
    let next = from < to ? windowAt(from) : undefined;
    for (let at = from; next !== undefined; ) {
      const bytes: Uint8Array = await next;
      at += bytes.byteLength;
      next = at < to ? windowAt(at) : undefined;
      // Whoever takes the next one hears of a failure; a reader that turned away does not.
      next?.catch(() => {});
      const began = clock.now();
      yield bytes;
      const quick = clock.now() - began <= quick_ms;
      const ahead = Math.min(to, at + window_bytes);
      if (next === undefined || ahead === to || !quick || !flows.tryTake()) continue;
      let body: Readable | undefined;
      let waits_since = Number.POSITIVE_INFINITY;
      const watch = clock.every(hold_ms, () => {
        if (clock.now() - waits_since >= hold_ms) body?.destroy();
      });
      try {
        yield await next;
        at = ahead;
        body = await get(key, etag, at, to);
        for await (const piece of body as AsyncIterable<Uint8Array>) {
          at += piece.byteLength;
          waits_since = clock.now();
          yield piece;
          waits_since = Number.POSITIVE_INFINITY;
          if (body.destroyed) break;
        }
      } catch (error) {
        // What broke off is asked for again from there, in windows; unless that was a window.
        if (at < ahead) throw error;
      } finally {
        watch.cancel();
        body?.destroy();
        flows.give();
      }
      next = at < to ? windowAt(at) : undefined;
    }
  };
}
