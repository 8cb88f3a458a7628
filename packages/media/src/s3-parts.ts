import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { randomId, systemRandom } from '@iris/runtime';
import { type Permits, permits } from './permits.js';
import type { MediaSink } from './writer.js';

/** What is done to one object of a server that takes it in parts. */
export interface PartTarget {
  put(body: Uint8Array): Promise<void>;
  begin(): Promise<string>;
  /** @returns what {@link complete} wants to know of it */
  part(upload: string, number: number, body: Uint8Array): Promise<string | undefined>;
  complete(upload: string, parts: readonly (string | undefined)[]): Promise<void>;
  abort(upload: string): Promise<void>;
}

/** What all uploads of a process share. */
export interface PartRoom {
  /** Parts that fill in memory, or are on their way from there. */
  readonly filling: Permits;
  /** Parts that are read from disk to be sent. */
  readonly loading: Permits;
  readonly spill_dir: string;
}

/** @param options.parts how many may be in memory at once, at least 3; beyond, they wait on disk for their turn */
export function partRoom({ parts, spill_dir }: { parts: number; spill_dir: string }): PartRoom {
  const loading = Math.max(1, Math.floor(parts / 3));
  return { filling: permits(parts - loading), loading: permits(loading), spill_dir };
}

/** Parts of one upload that are on their way at once. */
const partsAtOnce = 3;
/** What an upload may have in memory before it needs room: so a small file never touches the disk. */
const free_bytes = 64 * 1024;

/** One part, as it fills: in memory when there is room, else on disk. */
interface Part {
  used: number;
  /** Memory that holds it; undefined when it is on disk. */
  bytes: Buffer | undefined;
  /** Where it begins on disk. */
  readonly at: number;
  permit: boolean;
}

/** A file in parts of exactly `part_bytes`, the last one shorter; a file that is smaller than one is put whole. */
export function partSink(
  target: PartTarget,
  room: PartRoom,
  options: { keep: boolean; part_bytes: number; upload?: string; etags?: readonly (string | undefined)[] },
): MediaSink {
  const { part_bytes } = options;
  const etags: (string | undefined)[] = [...(options.etags ?? [])];
  let upload = options.upload;
  let number = etags.length;
  let filling: Part | undefined;
  let disk: Promise<FileHandle> | undefined;
  let diskEnd = 0;
  const waiting: { readonly part: Part; readonly number: number }[] = [];
  const sending = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  let over = false;

  /** Its name goes at once: whatever becomes of this process, nothing is left. */
  const openDisk = async (): Promise<FileHandle> => {
    const path = join(room.spill_dir, `iris-spill-${randomId(systemRandom)}`);
    const file = await open(path, 'wx+', 0o600);
    await unlink(path);
    return file;
  };
  const release = (part: Part): void => {
    if (part.permit) room.filling.give();
    part.permit = false;
    part.bytes = undefined;
  };
  const newPart = (): Part => {
    const at = diskEnd;
    diskEnd += part_bytes;
    return { used: 0, bytes: Buffer.allocUnsafe(0), at, permit: false };
  };

  async function add(part: Part, chunk: Uint8Array): Promise<void> {
    const end = part.used + chunk.byteLength;
    if (part.bytes !== undefined && end > free_bytes && !part.permit) {
      part.permit = room.filling.tryTake();
      if (!part.permit) {
        disk ??= openDisk();
        await writeAll(await disk, part.bytes.subarray(0, part.used), part.at);
        part.bytes = undefined;
      }
    }
    if (part.bytes === undefined) await writeAll(await disk!, chunk, part.at + part.used);
    else {
      if (part.bytes.byteLength < end) {
        const larger = Buffer.allocUnsafe(part.permit ? part_bytes : Math.max(end, part.bytes.byteLength * 2));
        part.bytes.copy(larger, 0, 0, part.used);
        part.bytes = larger;
      }
      part.bytes.set(chunk, part.used);
    }
    part.used = end;
  }

  async function send(part: Part, n: number): Promise<void> {
    const fromDisk = part.bytes === undefined;
    if (fromDisk) await room.loading.take();
    try {
      if (over) return;
      let body = part.bytes?.subarray(0, part.used);
      if (body === undefined) {
        body = Buffer.allocUnsafe(part.used);
        await readAll(await disk!, body, part.at);
      }
      etags[n] = await target.part(upload!, n + 1, body);
    } finally {
      if (fromDisk) room.loading.give();
      release(part);
    }
  }
  function pump(): void {
    while (failure === undefined && sending.size < partsAtOnce && waiting.length > 0) {
      const { part, number: n } = waiting.shift()!;
      const done: Promise<void> = send(part, n)
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .then(() => {
          sending.delete(done);
          pump();
        });
      sending.add(done);
    }
  }
  async function enqueue(part: Part): Promise<void> {
    upload ??= await target.begin();
    waiting.push({ part, number: number++ });
    pump();
  }
  const check = (): void => {
    if (failure !== undefined) throw failure.error;
  };
  async function drained(): Promise<void> {
    while (sending.size > 0) await Promise.race(sending);
    check();
  }
  async function end(): Promise<void> {
    over = true;
    if (filling !== undefined) release(filling);
    for (const { part } of waiting.splice(0)) release(part);
    await Promise.all(sending);
    await (await disk)?.close();
  }

  return {
    async write(chunk) {
      check();
      for (let at = 0; at < chunk.byteLength; ) {
        filling ??= newPart();
        const count = Math.min(part_bytes - filling.used, chunk.byteLength - at);
        await add(filling, chunk.subarray(at, at + count));
        at += count;
        if (filling.used < part_bytes) continue;
        const full = filling;
        filling = undefined;
        await enqueue(full);
      }
    },
    async finish() {
      const rest = filling;
      if (number === 0) {
        let body: Buffer = rest?.bytes?.subarray(0, rest.used) ?? Buffer.allocUnsafe(rest?.used ?? 0);
        if (rest !== undefined && rest.bytes === undefined) await readAll(await disk!, body, rest.at);
        await target.put(body);
        body = Buffer.alloc(0);
        // Begun in vain by a process that is gone.
        if (upload !== undefined) await target.abort(upload).catch(() => {});
        return end();
      }
      filling = undefined;
      if (rest !== undefined) await enqueue(rest);
      await drained();
      await target.complete(upload!, etags);
      await end();
    },
    async abort() {
      await end();
      if (upload !== undefined) await target.abort(upload);
    },
    async suspend() {
      if (!options.keep) {
        await end();
        if (upload !== undefined) await target.abort(upload);
        return;
      }
      // What is full goes up still; a part that is not cannot be gone on with.
      await drained();
      await end();
    },
  };
}

/** One `write` may take less than it was given. */
export async function writeAll(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < chunk.byteLength; ) at += (await file.write(chunk, at, chunk.byteLength - at, position + at)).bytesWritten;
}

async function readAll(file: FileHandle, into: Buffer, position: number): Promise<void> {
  for (let at = 0; at < into.byteLength; ) {
    const { bytesRead } = await file.read(into, at, into.byteLength - at, position + at);
    if (bytesRead === 0) throw new Error('what was spilled to disk is gone');
    at += bytesRead;
  }
}
