import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Clock, type Random, randomId, systemClock, systemRandom } from '@iris/runtime';
import type { MediaReader, MediaStore, MediaWriter } from './media.js';
import { objectName } from './object-name.js';
import { writeAll } from './s3-parts.js';
import { mediaWriter, type Resumed } from './writer.js';

const window_bytes = 256 * 1024;
/** A large file takes a while to be copied; who died over it is not waited for longer than this. */
const [claimPoll_ms, claimTries] = [20, 150];
const claimSuffix = (suffix: string): string => suffix.replace('-kept-', '-claim-');

/**
 * Files below `folder`: `files/<tenant>/<object id>`, and what is being written in `tmp/`. A file comes into its place by a rename, after
 * it is on the disk. Several processes may share the folder.
 */
export function filesystemMedia(options: { readonly folder: string; readonly clock?: Clock; readonly random?: Random }): MediaStore {
  const { folder, clock = systemClock, random = systemRandom } = options;
  const unfinished = join(folder, 'tmp');
  const ofTenant = (tenant_id: string): string => join(folder, 'files', objectName(tenant_id));
  const fileOf = (tenant_id: string, object_id: string): string => join(ofTenant(tenant_id), objectName(object_id));

  const keptSuffix = (tenant_id: string, object_id: string): string =>
    `-kept-${createHash('sha256')
      .update(`${objectName(tenant_id)}/${objectName(object_id)}`)
      .digest('hex')}`;

  /** What is kept, opened. While somebody takes it over it has another name for a moment, which is waited for. */
  async function openKept(suffix: string): Promise<{ temporary: string; file: FileHandle } | undefined> {
    for (let tries = 0; ; tries++) {
      const names = await readdir(unfinished).catch(absent([] as string[]));
      const name = names.find((one) => one.endsWith(suffix));
      const temporary = name && join(unfinished, name);
      const file = temporary === undefined ? undefined : await open(temporary, 'r+').catch(absent(undefined));
      if (temporary !== undefined && file !== undefined) return { temporary, file };
      // Neither there, nor gone to another name since it was seen.
      if (tries === claimTries || (name === undefined && !names.some((one) => one.endsWith(claimSuffix(suffix))))) return undefined;
      await new Promise<void>((resolve) => void clock.after(claimPoll_ms, resolve));
    }
  }

  function writerOf(
    temporary: string,
    file: FileHandle,
    place: string,
    keep: boolean,
    resumed?: Resumed & { suffix: string },
  ): MediaWriter {
    let at = resumed?.offset ?? 0;
    let own = resumed === undefined;
    /**
     * Who goes on with a file takes it away from whoever began it and may write yet, on a connection that is thought dead: by its name, which
     * only one can take, and into a copy, since the other has it open.
     */
    const claim = async (suffix: string): Promise<void> => {
      const name = join(unfinished, `${clock.now()}-${randomId(random)}`);
      const taken = `${name}${claimSuffix(suffix)}`;
      await rename(temporary, taken);
      temporary = name;
      try {
        await copyFile(taken, name, constants.COPYFILE_FICLONE);
        await file.close();
        file = await open(name, 'r+');
        await file.truncate(at);
        // It is seen again when it is whole.
        temporary = `${name}${suffix}`;
        await rename(name, temporary);
      } finally {
        await rm(taken, { force: true });
      }
      own = true;
    };
    const abort = async (): Promise<void> => {
      await file.close().catch(() => {});
      await rm(temporary, { force: true });
    };
    return mediaWriter(
      {
        async write(chunks) {
          if (!own && resumed !== undefined) await claim(resumed.suffix);
          at = await writeAll(file, chunks, at);
        },
        async finish() {
          if (!own && resumed !== undefined) await claim(resumed.suffix);
          await file.sync();
          await file.close();
          await mkdir(dirname(place), { recursive: true });
          await rename(temporary, place);
          await syncFolder(dirname(place));
        },
        abort,
        async suspend() {
          if (!keep) return abort();
          await file.sync();
          await file.close();
        },
      },
      resumed,
    );
  }

  const media: MediaStore = {
    async open(tenant_id, object_id, { keep } = { keep: false }) {
      await mkdir(unfinished, { recursive: true });
      // When it was opened is in the name: a folder that was copied or restored has other times on its files.
      const temporary = join(unfinished, `${clock.now()}-${randomId(random)}${keep ? keptSuffix(tenant_id, object_id) : ''}`);
      return writerOf(temporary, await open(temporary, 'wx'), fileOf(tenant_id, object_id), keep);
    },

    async resume(tenant_id, object_id) {
      const suffix = keptSuffix(tenant_id, object_id);
      const found = await openKept(suffix);
      if (found === undefined) return undefined;
      const { temporary, file } = found;
      const offset = (await file.stat()).size;
      const readBack = () => media.read(tenant_id, object_id);
      const discard = () => media.remove(tenant_id, object_id);
      return { offset, writer: writerOf(temporary, file, fileOf(tenant_id, object_id), true, { offset, readBack, discard, suffix }) };
    },

    async read(tenant_id, object_id, { offset, length = Number.POSITIVE_INFINITY } = { offset: 0 }): Promise<MediaReader | undefined> {
      const path = fileOf(tenant_id, object_id);
      const size = await sizeOf(path);
      if (size === undefined) return undefined;
      return { size, bytes: bytesOf(path, size, offset, Math.min(size, offset + length)) };
    },

    async stat(tenant_id, object_id) {
      const size = await sizeOf(fileOf(tenant_id, object_id));
      return size === undefined ? undefined : { size };
    },

    remove: (tenant_id, object_id) => rm(fileOf(tenant_id, object_id), { force: true }),
    removeTenant: (tenant_id) => rm(ofTenant(tenant_id), { recursive: true, force: true }),

    async sweep(before_ms) {
      const names = await readdir(unfinished).catch(absent([]));
      const old = names.filter((name) => Number(name.split('-', 1)[0]) < before_ms);
      const gone = await Promise.all(old.map((name) => rm(join(unfinished, name)).then(() => 1, absent(0))));
      return gone.reduce<number>((sum, one) => sum + one, 0);
    },

    close: async () => {},
  };
  return media;
}

/** A handler of errors: `value` when it is not there, else the error again. */
const absent =
  <T>(value: T) =>
  (error: unknown): T => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return value;
    throw error;
  };

const sizeOf = (path: string): Promise<number | undefined> => stat(path).then(({ size }) => size, absent(undefined));

/** So that the new name outlives a loss of power. Not every system can do that to a folder. */
async function syncFolder(path: string): Promise<void> {
  const opened = await open(path, 'r').catch(() => undefined);
  await opened?.sync().catch(() => {});
  await opened?.close();
}

/** Opened when the first byte is asked for, closed with the last one or when the reader turns away. */
async function* bytesOf(path: string, size: number, from: number, to: number): AsyncGenerator<Uint8Array> {
  if (from >= to) return;
  const file = await open(path, 'r');
  try {
    // The name may lead to another file by now.
    if ((await file.stat()).size !== size) throw new Error('the file changed while it was read');
    for (let at = from; at < to; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(window_bytes, to - at)), 0, null, at);
      if (bytesRead === 0) throw new Error(`the file ends at ${at} of ${to} bytes`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
