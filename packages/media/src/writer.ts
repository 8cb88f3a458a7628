import { createHash } from 'node:crypto';
import type { MediaWriter } from './media.js';

/** Where the bytes of one file go. Calls come one after another, and none after one that failed but `abort`. */
export interface MediaSink {
  /** May keep nothing of `chunk` when it has resolved. */
  write(chunk: Uint8Array): Promise<void>;
  finish(): Promise<void>;
  /** May fail; nobody hears of it. */
  abort(): Promise<void>;
}

/** What every writer does, over what is different: counts, hashes, keeps calls in order, and ends once. */
export function mediaWriter(sink: MediaSink): MediaWriter {
  const hash = createHash('sha256');
  let size = 0;
  let state: 'open' | 'failed' | 'finished' | 'aborted' = 'open';
  let last: Promise<unknown> = Promise.resolve();
  let aborting: Promise<void> = Promise.resolve();

  /** After what was asked before, also when the caller did not wait for it. */
  function next<T>(step: () => Promise<T>): Promise<T> {
    const done = last.then(step);
    last = done.catch(() => {});
    return done;
  }
  const insist = (): void => {
    if (state !== 'open') throw new Error(`this file is ${state}`);
  };
  async function failing<T>(step: () => Promise<T>): Promise<T> {
    insist();
    try {
      return await step();
    } catch (error) {
      state = 'failed';
      // Not waited for: what failed may be slow to answer this as well.
      aborting = sink.abort().catch(() => {});
      throw error;
    }
  }

  return {
    append: (chunk) =>
      next(() =>
        failing(async () => {
          hash.update(chunk);
          size += chunk.byteLength;
          await sink.write(chunk);
        }),
      ),
    finish: () =>
      next(() =>
        failing(async () => {
          await sink.finish();
          state = 'finished';
          return { size, sha256: hash.digest('hex') };
        }),
      ),
    abort: () =>
      next(async () => {
        if (state === 'open') {
          state = 'aborted';
          aborting = sink.abort().catch(() => {});
        }
        await aborting;
      }),
  };
}
