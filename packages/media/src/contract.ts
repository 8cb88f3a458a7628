import { createCipheriv, createHash, randomUUID } from 'node:crypto';
import type { ObjectId, TenantId } from '@iris/protocol';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { type MediaStore, type MediaWriter, WrongSha256 } from './media.js';

export interface MediaUnderTest {
  readonly media: MediaStore;
  /** A second process on the same files. */
  readonly other: MediaStore;
  close(): Promise<void>;
}

const KiB = 1024;
const MiB = 1024 * KiB;

/** Bytes that repeat nowhere, so that a part in a wrong place is noticed; the same for the same seed. */
function bytes(size: number, seed = 1): Uint8Array {
  const key = createHash('sha256').update(`${seed}`).digest();
  return createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(size));
}
const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

const tenant = (): TenantId => `tn${randomUUID()}` as TenantId;
const id = (): ObjectId => `md_${randomUUID()}` as ObjectId;

async function append(writer: MediaWriter, data: Uint8Array, chunk: number): Promise<void> {
  for (let at = 0; at < data.byteLength; at += chunk) await writer.append(data.subarray(at, at + chunk));
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}

/** What every media store does. `open` is called once; tests are kept apart by tenants. */
export function describeMedia(name: string, open: () => Promise<MediaUnderTest>): void {
  describe(name, () => {
    jest.setTimeout(30_000);
    let under: MediaUnderTest;
    let media: MediaStore;
    let other: MediaStore;
    beforeAll(async () => {
      under = await open();
      ({ media, other } = under);
    }, 60_000);
    afterAll(async () => {
      await under?.close();
    }, 30_000);

    async function put(tenant_id: TenantId, object_id: ObjectId, data: Uint8Array): Promise<void> {
      const writer = await media.open(tenant_id, object_id);
      await append(writer, data, MiB);
      await writer.finish();
    }
    async function get(
      tenant_id: TenantId,
      object_id: ObjectId,
      range?: { offset: number; length?: number },
    ): Promise<Uint8Array | undefined> {
      const reader = await other.read(tenant_id, object_id, range);
      return reader && (await collect(reader.bytes));
    }

    test.each([
      [0, 1],
      [1, 1],
      [5, 2],
      [64 * KiB + 1, 64 * KiB],
      [5 * MiB - 1, 64 * KiB],
      [5 * MiB, 64 * KiB],
      [5 * MiB + 1, MiB - 7],
      [12 * MiB + 3, 7 * MiB],
    ])('%i bytes in chunks of %i come back as they were, with size and hash', async (size, chunk) => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(size)];
      const writer = await media.open(tenant_id, object_id);
      await append(writer, data, chunk);
      expect(await writer.finish()).toEqual({ size, sha256: sha256(data) });
      expect(await other.stat(tenant_id, object_id)).toEqual({ size });
      const reader = await other.read(tenant_id, object_id);
      expect(reader?.size).toBe(size);
      expect(sha256(await collect(reader!.bytes))).toBe(sha256(data));
      const lent = createHash('sha256');
      for await (const piece of (await other.read(tenant_id, object_id, { offset: 0, lent: true }))!.bytes) lent.update(piece);
      expect(lent.digest('hex')).toBe(sha256(data));
    });

    test('a chunk may be used again when append has resolved', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(6 * MiB)];
      const writer = await media.open(tenant_id, object_id);
      const chunk = new Uint8Array(100 * KiB);
      for (let at = 0; at < data.byteLength; at += chunk.byteLength) {
        const part = data.subarray(at, at + chunk.byteLength);
        chunk.set(part);
        await writer.append(chunk.subarray(0, part.byteLength));
        chunk.fill(0);
      }
      expect((await writer.finish()).sha256).toBe(sha256(data));
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(data));
    });

    test('chunks stay in order when the caller does not wait', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(11 * MiB)];
      const writer = await media.open(tenant_id, object_id);
      const appended: Promise<void>[] = [];
      for (let at = 0; at < data.byteLength; at += 300 * KiB) appended.push(writer.append(data.subarray(at, at + 300 * KiB)));
      const finished = writer.finish();
      await Promise.all(appended);
      expect((await finished).sha256).toBe(sha256(data));
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(data));
    });

    test('C90: what is taken at once, and what has to wait, stay in order; a chunk that was taken may be used again', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(11 * MiB + 5)];
      const writer = await media.open(tenant_id, object_id);
      const chunk = new Uint8Array(100 * KiB);
      let last: Promise<void> | undefined;
      for (let at = 0, n = 0; at < data.byteLength; at += chunk.byteLength, n++) {
        const part = data.subarray(at, at + chunk.byteLength);
        chunk.set(part);
        const piece = chunk.subarray(0, part.byteLength);
        if (writer.appendNow(piece)) {
          chunk.fill(0);
          continue;
        }
        // Of every other one the end is not waited for: nothing may overtake it.
        last = writer.append(n % 2 === 0 ? piece : piece.slice());
        if (n % 2 === 0) await last;
        else expect(writer.appendNow(piece)).toBe(false);
      }
      await last;
      expect(await writer.finish()).toEqual({ size: data.byteLength, sha256: sha256(data) });
      expect(writer.appendNow(chunk)).toBe(false);
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(data));
    });

    test('nothing is there before finish, and nothing after abort', async () => {
      for (const size of [10, 11 * MiB]) {
        const [tenant_id, object_id] = [tenant(), id()];
        const writer = await media.open(tenant_id, object_id);
        await append(writer, bytes(size), MiB);
        expect(await other.stat(tenant_id, object_id)).toBeUndefined();
        expect(await other.read(tenant_id, object_id)).toBeUndefined();
        await writer.abort();
        await writer.abort();
        expect(await other.stat(tenant_id, object_id)).toBeUndefined();
        await expect(writer.append(bytes(1))).rejects.toThrow();
        await expect(writer.finish()).rejects.toThrow();
        expect(await other.read(tenant_id, object_id)).toBeUndefined();
      }
    });

    test('the memory of a chunk is its giver’s again when it has been taken', async () => {
      for (const size of [3, MiB]) {
        const [tenant_id, object_id, data] = [tenant(), id(), bytes(7 * size)];
        const writer = await media.open(tenant_id, object_id);
        const memory = Buffer.alloc(size);
        const cut = Math.ceil(size / 3);
        for (let at = 0; at < data.byteLength; at += size) {
          memory.set(data.subarray(at, at + size));
          await writer.append(at % 2 === 0 ? memory : [memory.subarray(0, cut), memory.subarray(cut)]);
          memory.fill(0);
        }
        await writer.finish();
        expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(data));
      }
    });

    test('finish ends it: no more bytes, no second finish, and abort takes nothing back', async () => {
      const [tenant_id, object_id] = [tenant(), id()];
      const writer = await media.open(tenant_id, object_id);
      await writer.append(bytes(3));
      await writer.finish();
      await expect(writer.append(bytes(1))).rejects.toThrow();
      await expect(writer.finish()).rejects.toThrow();
      await writer.abort();
      expect(await other.stat(tenant_id, object_id)).toEqual({ size: 3 });
    });

    test('started over: the one that finishes last stands, whole', async () => {
      const [tenant_id, object_id] = [tenant(), id()];
      const [first, second] = [bytes(6 * MiB, 1), bytes(2 * MiB, 2)];
      const one = await media.open(tenant_id, object_id);
      await append(one, first, MiB);
      const two = await other.open(tenant_id, object_id);
      await append(two, second, MiB);
      await one.finish();
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(first));
      await two.finish();
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(second));
    });

    test('finish says what the bytes must have: others are not kept', async () => {
      for (const size of [10, 11 * MiB]) {
        const [tenant_id, object_id, data] = [tenant(), id(), bytes(size)];
        const wrong = await media.open(tenant_id, object_id);
        await append(wrong, data, MiB);
        await expect(wrong.finish(sha256(bytes(3)))).rejects.toThrow(WrongSha256);
        await wrong.abort();
        expect(await other.stat(tenant_id, object_id)).toBeUndefined();
        const right = await media.open(tenant_id, object_id);
        await append(right, data, MiB);
        expect(await right.finish(sha256(data))).toEqual({ size, sha256: sha256(data) });
      }
    });

    test('suspended and gone on with elsewhere: the rest is appended behind the offset, and the hash is that of all of it', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(13 * MiB)];
      const first = await media.open(tenant_id, object_id, { keep: true });
      await append(first, data.subarray(0, 8 * MiB), MiB);
      await first.suspend();
      await expect(first.append(bytes(1))).rejects.toThrow();
      expect(await other.stat(tenant_id, object_id)).toBeUndefined();
      const second = await other.resume(tenant_id, object_id);
      expect(second!.offset).toBeGreaterThan(0);
      expect(second!.offset).toBeLessThanOrEqual(8 * MiB);
      await append(second!.writer, data.subarray(second!.offset, 11 * MiB), MiB);
      await second!.writer.suspend();
      const third = await media.resume(tenant_id, object_id);
      expect(third!.offset).toBeGreaterThanOrEqual(second!.offset);
      await append(third!.writer, data.subarray(third!.offset), MiB);
      expect(await third!.writer.finish(sha256(data))).toEqual({ size: data.byteLength, sha256: sha256(data) });
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(data));
      expect(await media.resume(tenant_id, object_id)).toBeUndefined();
    });

    test('gone on with while whoever began it writes yet: what it has written since changes nothing, and only one comes to an end', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(13 * MiB)];
      const first = await media.open(tenant_id, object_id, { keep: true });
      await append(first, data.subarray(0, 8 * MiB), MiB);
      let second = await other.resume(tenant_id, object_id);
      // Parts may be on their way yet.
      while (second === undefined) second = await other.resume(tenant_id, object_id);
      const { writer, offset } = second;
      await append(writer, data.subarray(offset), MiB);
      await first.append(bytes(MiB / 2, 9)).catch(() => {});
      expect(await writer.finish(sha256(data))).toEqual({ size: data.byteLength, sha256: sha256(data) });
      await first.append(bytes(MiB / 2, 9)).catch(() => {});
      await expect(first.finish()).rejects.toThrow();
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(data));
    });

    test('asked for while somebody takes it over, it is there all the time', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(13 * MiB)];
      const first = await media.open(tenant_id, object_id, { keep: true });
      await append(first, data.subarray(0, 12 * MiB), MiB);
      await first.suspend();
      const { writer, offset } = (await other.resume(tenant_id, object_id))!;
      let over = false;
      const taking = writer.append(data.subarray(offset, offset + MiB)).finally(() => {
        over = true;
      });
      const seen: (number | undefined)[] = [];
      while (!over) {
        const kept = await media.resume(tenant_id, object_id);
        seen.push(kept?.offset);
        await kept?.writer.suspend();
      }
      await taking;
      expect(seen.filter((one) => one === undefined || one < offset)).toEqual([]);
      await append(writer, data.subarray(offset + MiB), MiB);
      expect(await writer.finish(sha256(data))).toEqual({ size: data.byteLength, sha256: sha256(data) });
    });

    test('gone on with, and not the bytes that were meant: nothing is kept', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(6 * MiB)];
      const first = await media.open(tenant_id, object_id, { keep: true });
      await append(first, data, MiB);
      await first.suspend();
      const second = await other.resume(tenant_id, object_id);
      await second!.writer.append(bytes(7, 9));
      await expect(second!.writer.finish(sha256(data))).rejects.toThrow(WrongSha256);
      expect(await other.stat(tenant_id, object_id)).toBeUndefined();
    });

    test('what was not opened to be kept is gone when it is suspended', async () => {
      const [tenant_id, object_id] = [tenant(), id()];
      const writer = await media.open(tenant_id, object_id);
      await append(writer, bytes(6 * MiB), MiB);
      await writer.suspend();
      expect(await other.resume(tenant_id, object_id)).toBeUndefined();
      expect(await other.resume(tenant_id, id())).toBeUndefined();
    });

    test('ranges: exactly the bytes asked for, as far as there are any', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(2 * MiB + 17)];
      await put(tenant_id, object_id, data);
      const ranges: [number, number | undefined][] = [
        [0, undefined],
        [0, 1],
        [1, 512 * KiB],
        [512 * KiB - 1, 512 * KiB + 2],
        [data.byteLength - 1, 1],
        [data.byteLength - 5, 50],
        [data.byteLength, 1],
        [data.byteLength + 10, undefined],
        [7, 0],
      ];
      for (const [offset, length] of ranges) {
        const reader = await other.read(tenant_id, object_id, { offset, ...(length === undefined ? {} : { length }) });
        expect(reader?.size).toBe(data.byteLength);
        const wanted = data.subarray(offset, length === undefined ? undefined : offset + length);
        const got = await collect(reader!.bytes);
        expect([got.byteLength, sha256(got)]).toEqual([wanted.byteLength, sha256(wanted)]);
      }
    });

    test('a reader may turn away, or never begin', async () => {
      const [tenant_id, object_id, data] = [tenant(), id(), bytes(3 * MiB)];
      await put(tenant_id, object_id, data);
      for (let n = 0; n < 60; n++) await other.read(tenant_id, object_id);
      for (let n = 0; n < 20; n++) {
        const reader = await other.read(tenant_id, object_id);
        for await (const chunk of reader!.bytes) {
          expect(chunk.byteLength).toBeGreaterThan(0);
          break;
        }
      }
      expect(sha256((await get(tenant_id, object_id))!)).toBe(sha256(data));
    });

    test('a file that goes or changes under its reader: an error, or all of it, never less', async () => {
      for (const size of [3 * MiB, 9 * MiB]) {
        const [tenant_id, object_id, data] = [tenant(), id(), bytes(size)];
        await put(tenant_id, object_id, data);
        const reader = await other.read(tenant_id, object_id);
        const stream = reader!.bytes[Symbol.asyncIterator]();
        const first = await stream.next();
        if (size === 3 * MiB) await media.remove(tenant_id, object_id);
        else await put(tenant_id, object_id, bytes(MiB, 9));
        const chunks = [first.value as Uint8Array];
        try {
          for (;;) {
            const next = await stream.next();
            if (next.done) break;
            chunks.push(next.value);
          }
          expect(sha256(Buffer.concat(chunks))).toBe(sha256(data));
        } catch (error) {
          // One of jest's own would say that it was less.
          expect(error).not.toHaveProperty('matcherResult');
        }
      }
    });

    test('remove: gone, and no error when it is not there', async () => {
      const [tenant_id, object_id] = [tenant(), id()];
      await put(tenant_id, object_id, bytes(3));
      await media.remove(tenant_id, object_id);
      await media.remove(tenant_id, object_id);
      expect(await other.stat(tenant_id, object_id)).toBeUndefined();
      expect(await other.read(tenant_id, object_id)).toBeUndefined();
    });

    test('tenants: the same id is another file; removeTenant removes one tenant’s, also what is not finished', async () => {
      const [one, two, object_id] = [tenant(), tenant(), id()];
      await put(one, object_id, bytes(10, 1));
      await put(two, object_id, bytes(10, 2));
      for (let n = 0; n < 5; n++) await put(one, id(), bytes(1));
      expect(sha256((await get(one, object_id))!)).toBe(sha256(bytes(10, 1)));
      await media.removeTenant(one);
      await media.removeTenant(one);
      expect(await other.stat(one, object_id)).toBeUndefined();
      expect(sha256((await get(two, object_id))!)).toBe(sha256(bytes(10, 2)));
    });

    test('whatever an id holds, it names one file of its tenant', async () => {
      const ids = [
        '..',
        '.',
        '',
        '../x',
        'a/../../b',
        '/etc/passwd',
        'A',
        'a',
        '%2e%2e',
        'é',
        'e\u0301',
        'x'.repeat(128),
        '🦊'.repeat(64),
        'a b?c#d&e+f',
        'con',
        '~',
      ];
      const tenants = [tenant(), '../up' as TenantId, 'a/b' as TenantId];
      for (const [t, tenant_id] of tenants.entries()) {
        for (const [n, name] of ids.entries()) await put(tenant_id, name as ObjectId, bytes(20, 1 + t * 100 + n));
      }
      for (const [t, tenant_id] of tenants.entries()) {
        for (const [n, name] of ids.entries()) {
          expect(sha256((await get(tenant_id, name as ObjectId))!)).toBe(sha256(bytes(20, 1 + t * 100 + n)));
        }
        await media.removeTenant(tenant_id);
        for (const name of ids) expect(await other.stat(tenant_id, name as ObjectId)).toBeUndefined();
      }
    });

    test('many at once', async () => {
      const tenant_id = tenant();
      const files = Array.from({ length: 12 }, (_, n) => ({ object_id: id(), data: bytes(n % 3 ? 200 * KiB : 6 * MiB, n + 1) }));
      await Promise.all(files.map(({ object_id, data }) => put(tenant_id, object_id, data)));
      const read = await Promise.all(files.map(({ object_id }) => get(tenant_id, object_id)));
      expect(read.map((data) => sha256(data!))).toEqual(files.map(({ data }) => sha256(data)));
    });

    test('sweep: what was opened earlier and never finished is aborted, and cannot be gone on with; the rest stays', async () => {
      const tenant_id = tenant();
      await media.sweep(Date.now() + 60_000);
      const [finished, old] = [id(), id()];
      await put(tenant_id, finished, bytes(6 * MiB));
      const abandoned = await media.open(tenant_id, old, { keep: true });
      await append(abandoned, bytes(11 * MiB), MiB);
      // No part is on its way any more: one that is stored after the abort would open it again.
      await abandoned.suspend();
      expect(await other.sweep(Date.now() - 60_000)).toBe(0);
      // Servers keep the time to the second, and it is their own.
      expect(await other.sweep(Date.now() + 60_000)).toBe(1);
      expect(await other.sweep(Date.now() + 60_000)).toBe(0);
      expect(await other.resume(tenant_id, old)).toBeUndefined();
      expect(await other.stat(tenant_id, old)).toBeUndefined();
      expect(await other.stat(tenant_id, finished)).toEqual({ size: 6 * MiB });
    });
  });
}
