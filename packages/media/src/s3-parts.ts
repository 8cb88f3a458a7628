import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { randomId, systemRandom } from '@iris/runtime';
import { NoRoom } from './media.js';
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
  /** Memory for one part: what was given back before, so that it is not left to the collector when it goes. */
  take(part_bytes: number): Buffer;
  /** @param memory that nobody reads any more; undefined when that is not sure: it is not used again */
  give(memory: Buffer | undefined): void;
  /** More bytes wait on disk, or fewer. @throws {@link NoRoom} when they are too many */
  spill(bytes: number): void;
}

/**
 * @param options.parts how many may be in memory at once, at least 3; beyond, they wait on disk for their turn
 * @param options.spill_bytes how many bytes may wait on disk
 */
export function partRoom({ parts, spill_dir, spill_bytes }: { parts: number; spill_dir: string; spill_bytes: number }): PartRoom {
  let spilled = 0;
  const loading = Math.max(1, Math.floor(parts / 3));
  const spare: Buffer[] = [];
  let out = 0;
  return {
    filling: permits(parts - loading),
    loading: permits(loading),
    spill_dir,
    take(part_bytes) {
      out++;
      const memory = spare.pop();
      return memory?.byteLength === part_bytes ? memory : Buffer.allocUnsafeSlow(part_bytes);
    },
    give(memory) {
      if (memory !== undefined) spare.push(memory);
      // Nobody uploads: nothing is kept.
      if (--out === 0) spare.length = 0;
    },
    spill(bytes) {
      if (bytes > 0 && spilled + bytes > spill_bytes) throw new NoRoom('too much waits for the server already');
      spilled += bytes;
    },
  };
}

/** Parts of one upload that are on their way at once. */
const partsAtOnce = 4;
/** What an upload may have in memory before it needs room: so a small file never touches the disk. */
const free_bytes = 64 * 1024;

/** One part, as it fills: in memory when there is room, else on disk. */
interface Part {
  used: number;
  /** Memory that holds it; undefined when it is on disk. */
  bytes: Buffer | undefined;
  /** Where it begins on disk, once it is there. */
  at: number;
  permit: boolean;
  /** Its memory is of the room's. */
  lent: boolean;
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
  /** Places of parts that are gone. */
  const places: number[] = [];
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
  const release = (part: Part, sure = true): void => {
    if (part.lent) room.give(sure ? part.bytes : undefined);
    if (part.permit) room.filling.give();
    if (part.at >= 0) places.push(part.at);
    part.at = -1;
    part.permit = part.lent = false;
    part.bytes = undefined;
  };
  const newPart = (): Part => ({ used: 0, bytes: Buffer.allocUnsafe(0), at: -1, permit: false, lent: false });
  const place = (): number => {
    const free = places.pop();
    if (free !== undefined) return free;
    room.spill(part_bytes);
    diskEnd += part_bytes;
    return diskEnd - part_bytes;
  };

  async function add(part: Part, pieces: readonly Uint8Array[], size: number): Promise<void> {
    const end = part.used + size;
    if (part.bytes !== undefined && end > free_bytes && !part.permit) {
      part.permit = room.filling.tryTake();
      if (!part.permit) {
        part.at = place();
        disk ??= openDisk();
        await writeAll(await disk, [part.bytes.subarray(0, part.used)], part.at);
        part.bytes = undefined;
      }
    }
    if (part.bytes === undefined) await writeAll(await disk!, pieces, part.at + part.used);
    else {
      if (part.bytes.byteLength < end) {
        const larger = part.permit ? room.take(part_bytes) : Buffer.allocUnsafe(Math.max(end, part.bytes.byteLength * 2));
        part.bytes.copy(larger, 0, 0, part.used);
        part.bytes = larger;
        part.lent = part.permit;
      }
      for (let n = 0, at = part.used; n < pieces.length; at += pieces[n++]!.byteLength) part.bytes.set(pieces[n]!, at);
    }
    part.used = end;
  }

  async function send(part: Part, n: number): Promise<void> {
    const fromDisk = part.bytes === undefined;
    if (fromDisk) await room.loading.take();
    let sure = false;
    try {
      if (over) return;
      if (fromDisk) {
        part.bytes = room.take(part_bytes);
        part.lent = true;
        await readAll(await disk!, part.bytes.subarray(0, part.used), part.at);
      }
      etags[n] = await target.part(upload!, n + 1, part.bytes!.subarray(0, part.used));
      sure = true;
    } finally {
      // A request that failed may hold its bytes for a while yet.
      release(part, sure);
      if (fromDisk) room.loading.give();
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
    try {
      upload ??= await target.begin();
    } catch (error) {
      // It is in nobody's hands yet: what it holds goes back now, or never.
      release(part);
      throw error;
    }
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
    room.spill(-diskEnd);
    diskEnd = 0;
    // It may never have opened.
    await disk?.then(
      (file) => file.close(),
      () => {},
    );
  }

  return {
    async write(chunks) {
      check();
      for (const rest = [...chunks]; rest.length > 0; ) {
        filling ??= newPart();
        const pieces: Uint8Array[] = [];
        let room = part_bytes - filling.used;
        for (let chunk = rest[0]; chunk !== undefined && room > 0; chunk = rest[0]) {
          pieces.push(chunk.subarray(0, room));
          if (chunk.byteLength > room) rest[0] = chunk.subarray(room);
          else rest.shift();
          room = Math.max(0, room - chunk.byteLength);
        }
        await add(filling, pieces, part_bytes - room - filling.used);
        if (room > 0) return;
        const full = filling;
        filling = undefined;
        await enqueue(full);
      }
    },
    writeNow(chunk) {
      // What fills a part, or begins one, may have to wait.
      if (failure !== undefined || filling?.bytes === undefined || !filling.lent) return false;
      if (filling.used + chunk.byteLength >= part_bytes) return false;
      filling.bytes.set(chunk, filling.used);
      filling.used += chunk.byteLength;
      return true;
    },
    async finish() {
      const rest = filling;
      if (number === 0) {
        let body: Buffer = rest?.bytes?.subarray(0, rest.used) ?? Buffer.allocUnsafe(rest?.used ?? 0);
        if (rest !== undefined && rest.bytes === undefined) await readAll(await disk!, body, rest.at);
        try {
          await target.put(body);
        } catch (error) {
          // The request may hold its bytes for a while yet.
          filling = undefined;
          if (rest !== undefined) release(rest, false);
          throw error;
        }
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
      try {
        await drained();
      } finally {
        await end();
      }
    },
  };
}

/** One `write` may take less than it was given. @returns where the next byte goes */
export async function writeAll(file: FileHandle, chunks: readonly Uint8Array[], position: number): Promise<number> {
  let at = position;
  for (const rest = chunks.filter(({ byteLength }) => byteLength > 0); rest.length > 0; ) {
    const { bytesWritten } = await file.writev(rest.slice(0, vectorMax), at);
    at += bytesWritten;
    let gone = bytesWritten;
    while (rest.length > 0 && gone >= rest[0]!.byteLength) gone -= rest.shift()!.byteLength;
    if (gone > 0) rest[0] = rest[0]!.subarray(gone);
  }
  return at;
}
/** Some systems take no more in one call. */
const vectorMax = 512;

async function readAll(file: FileHandle, into: Buffer, position: number): Promise<void> {
  for (let at = 0; at < into.byteLength; ) {
    const { bytesRead } = await file.read(into, at, into.byteLength - at, position + at);
    if (bytesRead === 0) throw new Error('what was spilled to disk is gone');
    at += bytesRead;
  }
}
