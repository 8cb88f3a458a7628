import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog, systemClock } from '@iris/runtime';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CinemaLimits, findCinema } from './cinema.js';
import { sniff } from './sniff.js';

const limits: CinemaLimits = { time_ms: 15_000, memory_bytes: 2 ** 31, pixels: 10_000_000, poster_pixels: 200 };
const withLimits = (more: Partial<CinemaLimits>) => findCinema({ clock: systemClock, log: silentLog, limits: { ...limits, ...more } });
const found = await withLimits({});
if (found === undefined) console.warn('tests of films are left out: ffmpeg and ffprobe are not both here');

async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 10_000) yield bytes.subarray(at, at + 10_000);
}

(found === undefined ? describe.skip : describe)('UPL12: films (left out without ffmpeg)', () => {
  let folder: string;
  let film: Buffer;
  const made = (name: string, ...args: string[]): Buffer => {
    const path = join(folder, name);
    const { status, stderr } = spawnSync('ffmpeg', ['-v', 'error', '-y', ...args, path], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return readFileSync(path);
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'iris-film-test-'));
    film = made('a.mp4', '-f', 'lavfi', '-i', 'testsrc=size=640x360:rate=5:duration=2', '-c:v', 'mpeg4');
  }, 30_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('dimensions, duration, and a small picture near the beginning', async () => {
    const scene = await found!.look(pieces(film), 'video/mp4');
    expect(scene).toMatchObject({ width: 640, height: 360, duration: 2 });
    const { default: sharp } = await import('sharp');
    expect(await sharp(scene!.poster).metadata()).toMatchObject({ format: 'png', width: 200, height: 113 });
  });

  test('one that was filmed upright is upright', async () => {
    const turned = made('b.mov', '-i', join(folder, 'a.mp4'), '-c', 'copy', '-metadata:s:v', 'rotate=90');
    const scene = await found!.look(pieces(turned), 'video/quicktime');
    expect(scene).toMatchObject({ width: 360, height: 640 });
    const { default: sharp } = await import('sharp');
    expect(await sharp(scene!.poster).metadata()).toMatchObject({ width: 113, height: 200 });
  });

  test.each([
    ['audio/mpeg', 'a.mp3', []],
    ['audio/ogg', 'a.ogg', ['-c:a', 'flac']],
    ['audio/wav', 'a.wav', []],
    ['audio/flac', 'a.flac', []],
    ['audio/mp4', 'a.m4a', []],
  ])('%s: how long it is, and nothing to see', async (mime, name, how) => {
    const sound = made(name, '-f', 'lavfi', '-i', 'sine=duration=3', ...how);
    expect(sniff(sound.subarray(0, 4_096), '').mime).toBe(mime);
    const scene = await found!.look(pieces(sound), mime);
    expect(Object.keys(scene!)).toEqual(['duration']);
    expect(Math.round(scene!.duration! * 5) / 5).toBe(3);
  });

  test('a list of other files is not followed, whatever type it was given', async () => {
    const list = Buffer.from(`#EXTM3U\n#EXTINF:10,\n${join(folder, 'a.mp4')}\n`);
    const concat = Buffer.from(`ffconcat version 1.0\nfile ${join(folder, 'a.mp4')}\n`);
    for (const one of [list, concat, Buffer.alloc(0), film.subarray(0, film.length / 2)])
      for (const mime of ['video/mp4', 'video/webm']) expect((await found!.look(pieces(one), mime))?.poster).toBeUndefined();
    expect(await found!.look(pieces(film), 'application/x-mpegURL')).toBeUndefined();
  });

  test('too many pixels, too slow, too much memory: no preview, and the next film has one', async () => {
    const small = await withLimits({ pixels: 1_000 });
    expect((await small!.look(pieces(film), 'video/mp4'))?.poster).toBeUndefined();
    const { clock, overdue } = hurried();
    const slow = await findCinema({ clock: systemClock, log: silentLog, limits });
    const hasty = await findCinema({ clock, log: silentLog, limits });
    overdue.now = true;
    expect(await hasty!.look(pieces(film), 'video/mp4')).toBeUndefined();
    overdue.now = false;
    const tight = { ...limits };
    const poor = await findCinema({ clock: systemClock, log: silentLog, limits: tight });
    tight.memory_bytes = 2 ** 25;
    expect(await poor!.look(pieces(film), 'video/mp4')).toBeUndefined();
    tight.memory_bytes = limits.memory_bytes;
    expect((await poor!.look(pieces(film), 'video/mp4'))?.poster).toBeDefined();
    expect((await slow!.look(pieces(film), 'video/mp4'))?.poster).toBeDefined();
  });
});

/** A clock on which all is overdue at once, when it is told so. */
function hurried() {
  const overdue = { now: false };
  const clock = { ...systemClock, after: (ms: number, run: () => void) => systemClock.after(overdue.now ? 0 : ms, run) };
  return { clock, overdue };
}
