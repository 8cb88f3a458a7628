import type { Readable } from 'node:stream';
import type { Clock } from '@iris/runtime';
import { permits } from './permits.js';

/** Read at a time: a slow reader holds two of these, and no connection. */
const window_bytes = 1024 * 1024;
/** Whoever takes a window within this reads faster than windows can be asked for, and is given all that is left in one answer. */
const quick_ms = 50;
/** Connections that readers may have at once; the others are for everything else. */
const flowsMax = 32;

/** Asks the server for the bytes `[from, to)` of one version of an object. */
export type GetRange = (key: string, etag: string | undefined, from: number, to: number) => Promise<Readable>;

/**
 * The same as they come, on a connection of its own that the reader loses when it stops; each piece is the reader's until it asks for the next
 * one. Rejects when there is no such line: {@link openLine}.
 */
export type GetLine = (key: string, etag: string | undefined, from: number, to: number) => Promise<AsyncIterable<Uint8Array>>;

/**
 * Bytes of objects at the pace of who reads them: one window after another, the next one asked for while this one is used; or as they come.
 */
export function s3Reader(get: GetRange, getLine: GetLine, clock: Clock) {
  const flows = permits(flowsMax);

  /** @param lent whoever reads is done with each piece when it asks for the next one */
  return async function* bytesOf(
    key: string,
    etag: string | undefined,
    from: number,
    to: number,
    lent = false,
  ): AsyncGenerator<Uint8Array> {
    const windowAt = async (at: number): Promise<Uint8Array> => {
      const end = Math.min(to, at + window_bytes);
      const pieces: Uint8Array[] = [];
      for await (const piece of (await get(key, etag, at, end)) as AsyncIterable<Uint8Array>) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      if (bytes.byteLength !== end - at) throw new Error(`got ${bytes.byteLength} of ${end - at} bytes at ${at}`);
      return bytes;
    };
    let mayFlow = true;
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
      if (next === undefined || ahead === to || !quick || !mayFlow || !flows.tryTake()) continue;
      try {
        yield await next;
        at = ahead;
        mayFlow = false;
        const line = await getLine(key, etag, at, to);
        mayFlow = true;
        for await (const piece of line) {
          at += piece.byteLength;
          yield lent ? piece : new Uint8Array(piece);
        }
      } catch (error) {
        // What broke off is asked for again from there, in windows; unless that was a window.
        if (at < ahead) throw error;
      } finally {
        flows.give();
      }
      next = at < to ? windowAt(at) : undefined;
    }
  };
}
