import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { MediaId, TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import type { MediaReader, MediaStore, MediaWriter } from './media.js';

const readChunk_bytes = 64 * 1024;

/**
 * Files in a folder: `files/<tenant>/<media>` when whole, `unfinished/` before. A file becomes visible by a rename, after its bytes and
 * then its folder's entry were flushed to the disk. Several processes may share the folder.
 * @param options.dir is made when it is not there
 */
export async function filesystemMedia({ dir, clock }: { dir: string; clock: Clock }): Promise<MediaStore> {
  const unfinished = join(dir, 'unfinished');
  const files = join(dir, 'files');
  await mkdir(unfinished, { recursive: true });
  await mkdir(files, { recursive: true });
  const tenantFolder = (tenant_id: TenantId) => join(files, safeName(tenant_id));
  const fileOf = (tenant_id: TenantId, media_id: MediaId) => join(tenantFolder(tenant_id), safeName(media_id));

  return {
    async open(tenant_id, media_id) {
      const path = join(unfinished, `${clock.now().toString(36)}-${randomBytes(9).toString('hex')}`);
      return writer(await open(path, 'wx'), path, fileOf(tenant_id, media_id));
    },
    async read(tenant_id, media_id, range) {
      const path = fileOf(tenant_id, media_id);
      const found = await sizeOf(path);
      return found && reader(path, found.size, range);
    },
    stat: (tenant_id, media_id) => sizeOf(fileOf(tenant_id, media_id)),
    remove: (tenant_id, media_id) => rm(fileOf(tenant_id, media_id), { force: true }),
    removeTenant: (tenant_id) => rm(tenantFolder(tenant_id), { recursive: true, force: true }),
    async sweep(before_ms) {
      let swept = 0;
      for (const name of await readdir(unfinished)) {
        const path = join(unfinished, name);
        const found = await stat(path).catch(absent);
        if (found === undefined || found.mtimeMs >= before_ms) continue;
        // Another process may have finished or swept it just now.
        if (await unlink(path).then(() => true, absent)) swept++;
      }
      return swept;
    },
    close: async () => {},
  };
}

/**
 * Letters, digits, `-` and `_` as they are, every other byte as `%xx`: one name per id, and none that leaves the folder or is a device.
 * @throws when the id is too long for a file name
 */
function safeName(id: string): string {
  const name = `_${Buffer.from(id, 'utf8')
    .toString('latin1')
    .replace(/[^A-Za-z0-9_-]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)}`;
  if (name.length > 250) throw new Error('the id is too long for a file name');
  return name;
}

function writer(handle: FileHandle, path: string, target: string): MediaWriter {
  const hash = createHash('sha256');
  let size = 0;
  let state: 'open' | 'ended' = 'open';
  const end = () => {
    if (state === 'ended') throw new Error('the file is finished or aborted');
    state = 'ended';
  };
  const drop = async () => {
    await handle.close().catch(() => {});
    await rm(path, { force: true }).catch(() => {});
  };
  return {
    async append(chunk) {
      if (state === 'ended') throw new Error('the file is finished or aborted');
      // The caller may use its bytes again once this resolves, and not before: the hash is taken from what was given.
      hash.update(chunk);
      size += chunk.length;
      for (let at = 0; at < chunk.length; ) at += (await handle.write(chunk, at)).bytesWritten;
    },
    async finish() {
      end();
      try {
        await handle.sync();
        await handle.close();
        await mkdir(dirname(target), { recursive: true });
        await rename(path, target);
        await flushFolder(dirname(target));
      } catch (error) {
        await drop();
        throw error;
      }
      return { size, sha256: hash.digest('hex') };
    },
    async abort() {
      if (state === 'ended') return;
      state = 'ended';
      await drop();
    },
  };
}

/** Without it, a power failure may take the name away though the bytes are there. */
async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function reader(path: string, size: number, range: { offset: number; length?: number } = { offset: 0 }): MediaReader {
  const start = Math.min(range.offset, size);
  const end = Math.min(size, range.length === undefined ? size : start + range.length);
  return { size, bytes: bytes(path, start, end) };
}

async function* bytes(path: string, start: number, end: number): AsyncIterable<Uint8Array> {
  if (end <= start) return;
  let given = 0;
  for await (const chunk of createReadStream(path, { start, end: end - 1, highWaterMark: readChunk_bytes })) {
    given += (chunk as Buffer).length;
    yield chunk as Buffer;
  }
  if (given < end - start) throw new Error(`the file ended ${end - start - given} bytes short`);
}

async function sizeOf(path: string): Promise<{ size: number } | undefined> {
  const found = await stat(path).catch(absent);
  return found && { size: found.size };
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
