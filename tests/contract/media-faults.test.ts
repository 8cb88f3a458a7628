import { createHash, randomBytes } from 'node:crypto';
import { fstatSync, readdirSync, readlinkSync } from 'node:fs';
import { type MediaStore, NoRoom, s3Media } from '@iris/media';
import type { ObjectId, TenantId } from '@iris/protocol';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { restartableS3 } from './s3-servers.js';
import { type Restartable, scratch } from './servers.js';

const MiB = 1024 * 1024;
const tenant_id = 'tn1' as TenantId;
const id = (name: string): ObjectId => `md_${name}` as ObjectId;

(restartableS3 ? describe : describe.skip)('the S3 server goes away and comes back (left out without versitygw)', () => {
  jest.setTimeout(60_000);
  let server: Restartable;
  let media: MediaStore;
  const put = async (object_id: ObjectId, size: number): Promise<void> => {
    const writer = await media.open(tenant_id, object_id);
    await writer.append(Buffer.alloc(size, 7));
    await writer.finish();
  };

  beforeAll(async () => {
    server = await restartableS3!();
    media = s3Media({ url: server.url });
  });
  afterAll(async () => {
    await media?.close();
    await server?.end();
  });

  test('killed in the middle of an upload: the writer says so, abort does not fail, and nothing is there', async () => {
    const writer = await media.open(tenant_id, id('cut'));
    await writer.append(Buffer.alloc(5 * MiB));
    await writer.append(Buffer.alloc(5 * MiB));
    await server.kill();
    await expect(writer.append(Buffer.alloc(6 * MiB)).then(() => writer.finish())).rejects.toThrow();
    await expect(writer.append(Buffer.alloc(1))).rejects.toThrow('this file is failed');
    await writer.abort();
    await server.start();
    expect(await media.stat(tenant_id, id('cut'))).toBeUndefined();
    // Parts that were on the server already are nobody's now.
    expect(await media.sweep(Date.now() + 60_000)).toBe(1);
    await put(id('cut'), 6 * MiB);
    expect(await media.stat(tenant_id, id('cut'))).toEqual({ size: 6 * MiB });
  });

  test('held up: what waits on disk stays within its bound; who wants more is refused, and others are stored, whole', async () => {
    const part = 5 * MiB;
    const { dir, remove } = scratch('spill');
    // Two parts in memory, four on disk.
    const small = s3Media({ url: server.url, memory_bytes: 1, spill_dir: dir, spill_bytes: 4 * part });
    const [calm, greedy] = [await small.open(tenant_id, id('calm')), await small.open(tenant_id, id('greedy'))];
    const bytes = randomBytes(3 * part + 1);
    const waiting = () => spilled(dir);
    let refused: unknown;
    try {
      for (const writer of [calm, greedy]) await writer.append(bytes.subarray(0, part));
      server.freeze();
      try {
        await calm.append(bytes.subarray(part));
        for (let more = 0; refused === undefined && more < 100; more++)
          refused = await greedy.append(bytes.subarray(0, part)).then(
            () => undefined,
            (error: unknown) => error,
          );
        expect(refused).toBeInstanceOf(NoRoom);
        if (waiting() !== undefined) expect(waiting()).toBeGreaterThan(part);
        if (waiting() !== undefined) expect(waiting()).toBeLessThanOrEqual(4 * part);
      } finally {
        server.thaw();
      }
      await greedy.abort();
      // What it had is free again, for others.
      const next = await small.open(tenant_id, id('next'));
      for (let n = 0; n < 3; n++) await next.append(bytes.subarray(0, part));
      await next.abort();
      expect(await calm.finish()).toEqual({ size: bytes.byteLength, sha256: createHash('sha256').update(bytes).digest('hex') });
      expect(await media.stat(tenant_id, id('greedy'))).toBeUndefined();
      if (waiting() !== undefined) expect(waiting()).toBe(0);
    } finally {
      await small.close();
      remove();
    }
  });

  test('killed in the middle of a read: an error, not an end; the next read is whole', async () => {
    await put(id('read'), 3 * MiB);
    const reader = await media.read(tenant_id, id('read'));
    const stream = reader!.bytes[Symbol.asyncIterator]();
    const first = await stream.next();
    expect((first.value as Uint8Array).byteLength).toBeLessThan(3 * MiB);
    await server.kill();
    await expect(stream.next()).rejects.toThrow();
    await server.start();
    let size = 0;
    for await (const chunk of (await media.read(tenant_id, id('read')))!.bytes) size += chunk.byteLength;
    expect(size).toBe(3 * MiB);
  });

  test('frozen: calls fail within half a minute, and work again when it is not', async () => {
    await put(id('frozen'), MiB);
    const timed = async (call: () => Promise<unknown>): Promise<number> => {
      const begin = performance.now();
      await expect(call()).rejects.toThrow();
      return performance.now() - begin;
    };
    server.freeze();
    try {
      const calls = [() => media.stat(tenant_id, id('frozen')), () => put(id('small'), 10), () => put(id('large'), 6 * MiB)];
      for (const took of await Promise.all(calls.map(timed))) expect(took).toBeLessThan(30_000);
    } finally {
      server.thaw();
    }
    expect(await media.stat(tenant_id, id('frozen'))).toEqual({ size: MiB });
    await put(id('large'), 6 * MiB);
  });
});

/** Bytes in files of `dir` that have no name any more, and are open here; undefined where a system does not say. */
function spilled(dir: string): number | undefined {
  if (process.platform !== 'linux') return undefined;
  let bytes = 0;
  for (const fd of readdirSync('/proc/self/fd'))
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`).startsWith(`${dir}/`)) bytes += fstatSync(Number(fd)).size;
    } catch {
      // Closed meanwhile.
    }
  return bytes;
}
