import { createHash } from 'node:crypto';
import { type MediaReader, type MediaWriter, NoRoom, WrongSha256 } from './media.js';

/** Where the bytes of one file go. Calls come one after another, and none after one that failed but `abort`. */
export interface MediaSink {
  /** May keep nothing of the chunks when it has resolved. */
  write(chunks: readonly Uint8Array[]): Promise<void>;
  /** Only between calls. @returns whether it has taken all of the chunk */
  writeNow?(chunk: Uint8Array): boolean;
  finish(): Promise<void>;
  /** May fail; nobody hears of it. */
  abort(): Promise<void>;
  /** Leave what is stored. May fail; nobody hears of it. */
  suspend(): Promise<void>;
}

/** A file whose beginning was stored by a writer that is gone: its hash is that of what stands in the end. */
export interface Resumed {
  readonly offset: number;
  readBack(): Promise<MediaReader | undefined>;
  discard(): Promise<void>;
}

/** What every writer does, over what is different: counts, hashes, keeps calls in order, and ends once. */
export function mediaWriter(sink: MediaSink, resumed?: Resumed): MediaWriter {
  const hash = createHash('sha256');
  let size = resumed?.offset ?? 0;
  let state: 'open' | 'failed' | 'finished' | 'aborted' | 'suspended' = 'open';
  let last: Promise<unknown> = Promise.resolve();
  let ending: Promise<void> = Promise.resolve();
  let unfinished = 0;

  /** After what was asked before, also when the caller did not wait for it. */
  function next<T>(step: () => Promise<T>): Promise<T> {
    unfinished++;
    const done = last.then(step).finally(() => {
      unfinished--;
    });
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
      ending = sink.abort().catch(() => {});
      const { code } = error as NodeJS.ErrnoException;
      throw code === 'ENOSPC' || code === 'EDQUOT' ? new NoRoom('the disk is full') : error;
    }
  }
  async function finishResumed({ readBack, discard }: Resumed, wanted: string | undefined): Promise<string> {
    await sink.finish();
    state = 'finished';
    const reader = await readBack();
    if (reader === undefined) throw new Error('the file is not there after it was finished');
    for await (const chunk of reader.bytes) hash.update(chunk);
    const sha256 = hash.digest('hex');
    if (wanted === undefined || wanted === sha256) return sha256;
    await discard();
    throw new WrongSha256(`the bytes have ${sha256}`);
  }
  const end = (as: 'aborted' | 'suspended', run: () => Promise<void>) =>
    next(async () => {
      if (state === 'open') {
        state = as;
        ending = run().catch(() => {});
      }
      await ending;
    });

  const took = (chunk: Uint8Array): void => {
    if (resumed === undefined) hash.update(chunk);
    size += chunk.byteLength;
  };

  return {
    appendNow(chunk) {
      if (state !== 'open' || unfinished > 0 || sink.writeNow?.(chunk) !== true) return false;
      took(chunk);
      return true;
    },
    append: (given) =>
      next(() =>
        failing(async () => {
          const chunks = given instanceof Uint8Array ? [given] : given;
          for (const chunk of chunks) took(chunk);
          await sink.write(chunks);
        }),
      ),
    finish: (wanted) =>
      next(() =>
        failing(async () => {
          if (resumed !== undefined) return { size, sha256: await finishResumed(resumed, wanted) };
          const sha256 = hash.digest('hex');
          if (wanted !== undefined && wanted !== sha256) throw new WrongSha256(`the bytes have ${sha256}`);
          await sink.finish();
          state = 'finished';
          return { size, sha256 };
        }),
      ),
    abort: () => end('aborted', () => sink.abort()),
    suspend: () => end('suspended', () => sink.suspend()),
  };
}
