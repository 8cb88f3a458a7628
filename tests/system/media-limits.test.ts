import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Log, silentLog, systemClock } from '@iris/runtime';
import { type Cluster, cluster, pull, sha256Of, type TestDevice, upload } from '@iris/testkit';
import { processStudio, type StudioLimits } from '@iris/worker';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { pngBomb } from '../corpus/png.js';

const MiB = 1024 * 1024;
const photo = (width = 640) =>
  sharp({ create: { width, height: 400, channels: 3, background: { r: 10, g: 200, b: 90 } } })
    .jpeg()
    .toBuffer();
/** Four hundred megabytes when it is decoded, which a decoder has to hold at once. */
const large = pngBomb({ width: 10_000, height: 10_000, bits: 32, interlaced: true });
/** Forty thousand million pixels, one line after another: no memory to speak of, and minutes. */
const slow = pngBomb({ width: 200_000, height: 200_000, bits: 1 });

describe('UPL12: what decodes is stopped at its limits', () => {
  const program = fileURLToPath(new URL('../../apps/worker/dist/media/child.js', import.meta.url));
  const limits: StudioLimits = { pixels: 2 ** 45, frames: 10, thumb_pixels: 64, time_ms: 300_000, memory_bytes: 280 * MiB };
  const events: { readonly event: string; readonly why: unknown }[] = [];
  const note = (event: string, more?: Record<string, unknown>) => void events.push({ event, why: more?.why });
  const log: Log = { ...silentLog, info: note, warn: note, error: note };

  test('memory: the process goes, its picture has no preview, and the next one has', async () => {
    const studio = processStudio({ clock: systemClock, log, limits, seats: 1, program });
    try {
      expect(await studio.look(large, 'image/png')).toBeUndefined();
      expect(events.splice(0)).toEqual([{ event: 'media.not_decoded', why: 'too much memory' }]);
      expect(await studio.look(await photo(), 'image/jpeg')).toMatchObject({ width: 640, height: 400 });
    } finally {
      await studio.close();
    }
  }, 120_000);

  test.each([
    ['while it is still being loaded', false],
    ['in the middle of a picture that takes minutes', true],
  ])(
    'the process does not outlive its worker, which may go %s',
    async (_, busy) => {
      const child = fork(program, [String(limits.memory_bytes)], {
        serialization: 'advanced',
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      });
      const gone = once(child, 'exit');
      if (busy) {
        const small = await photo();
        child.send({ n: 1, bytes: small, mime: 'image/jpeg', limits });
        await once(child, 'message');
        child.send({ n: 2, bytes: slow, mime: 'image/png', limits });
        // One thread of several decodes; another one answers, and then the first has begun.
        child.send({ n: 3, bytes: small, mime: 'image/jpeg', limits });
        expect(await once(child, 'message')).toMatchObject([{ n: 3 }, undefined]);
      }
      child.disconnect();
      await gone;
    },
    60_000,
  );

  test('time: the same; and on another seat others are looked at meanwhile', async () => {
    // Time is over when the test says so.
    const overdue: (() => void)[] = [];
    const after = (_: number, run: () => void) => {
      overdue.push(run);
      return { cancel() {} };
    };
    const clock = { ...systemClock, after };
    const studio = processStudio({ clock, log, limits, seats: 2, program });
    try {
      const looks = [studio.look(slow, 'image/png'), studio.look(await photo(), 'image/jpeg')];
      expect(await looks[1]).toMatchObject({ width: 640 });
      expect(await studio.look(await photo(320), 'image/jpeg')).toMatchObject({ width: 320 });
      overdue[0]!();
      expect(await looks[0]).toBeUndefined();
      expect(events.splice(0)).toEqual([{ event: 'media.not_decoded', why: 'too slow' }]);
      expect(await Promise.all([studio.look(await photo(), 'image/jpeg'), studio.look(await photo(320), 'image/jpeg')])).toMatchObject([
        { width: 640 },
        { width: 320 },
      ]);
    } finally {
      await studio.close();
    }
  }, 120_000);
});

describe('UPL12: bombs in a real worker', () => {
  let all: Cluster;
  beforeAll(async () => {
    all = await cluster({
      edges: 1,
      sessions: 1,
      workers: 1,
      set: { media_pixels: 2 ** 45, media_look_ms: 10_000, media_memory_bytes: 280 * MiB },
    });
  }, 120_000);
  afterAll(() => all?.close(), 60_000);

  interface Entry {
    readonly media_id: string;
    readonly thumb_media_id?: string;
  }
  async function attach(device: TestDevice, media_ref: string): Promise<Entry> {
    const { payload } = await device.send(media_ref, { media_refs: [media_ref] });
    return (payload.media as unknown as Entry[])[0]!;
  }

  test('each is a file like any other, whole; its worker lives on, and another tenant’s picture is not kept waiting by them', async () => {
    const [bomber, neighbour] = [await all.tenant(), await all.tenant()];
    const [one, other] = [await bomber.join('phone'), await neighbour.join('phone')];
    const { pid } = all.workers[0]!;
    const bombs = [slow, large, slow];
    // Their acks wait for a look: what stands behind them on that line waits too.
    const looks = bombs.map((bytes, n) => upload(one, `mu_${n}`, bytes, { start: { kind: 'image', mime: 'image/png' } }));
    await upload(other, 'mu_photo', await photo(), { start: { kind: 'image', mime: 'image/jpeg' } });
    const seen = await attach(other, 'mu_photo');
    expect(seen).toMatchObject({ kind: 'image', mime: 'image/jpeg', width: 640, height: 400 });
    expect(await sharp((await pull(other, seen.thumb_media_id!)).bytes).metadata()).toMatchObject({ format: 'webp', width: 512 });
    expect((await Promise.all(looks)).map(({ type }) => type)).toEqual(bombs.map(() => 'media.upload.ack'));
    for (const [n, bytes] of bombs.entries()) {
      const entry = await attach(one, `mu_${n}`);
      expect(entry).toMatchObject({ kind: 'file', mime: 'application/octet-stream', size: bytes.length });
      expect(entry.thumb_media_id).toBeUndefined();
      expect(sha256Of((await pull(one, entry.media_id)).bytes)).toBe(sha256Of(bytes));
    }
    expect(all.workers[0]).toMatchObject({ pid, alive: true });
  }, 120_000);
});
