import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { box, element, film } from '../../../../tests/corpus/films.js';
import type { Patch, ReadRange } from './read-range.js';
import { sniff } from './sniff.js';
import { lookAtMatroska } from './strip-matroska.js';
import { lookAtMovie } from './strip-movie.js';

const readOf =
  (bytes: Buffer): ReadRange =>
  async (offset, length) =>
    bytes.subarray(offset, offset + length);
function patched(bytes: Buffer, patches: readonly Patch[]): Buffer {
  const out = Buffer.from(bytes);
  for (const patch of patches) patch.bytes.copy(out, patch.offset);
  return out;
}
async function cleaned(bytes: Buffer, by: typeof lookAtMovie | typeof lookAtMatroska) {
  const { patches, ...facts } = await by(readOf(bytes), bytes.length);
  const clean = patched(bytes, patches);
  expect(clean.length).toBe(bytes.length);
  // Once is enough: a second look finds nothing more.
  expect(patched(clean, (await by(readOf(clean), clean.length)).patches).equals(clean)).toBe(true);
  return { clean, facts };
}
const leaks = (bytes: Buffer, secrets: readonly string[]) => secrets.filter((secret) => bytes.includes(secret, 0, 'latin1'));
const randoms = (count: number, size: number) => Array.from({ length: count }, () => randomBytes(size));
const u32 = (number: number) => Buffer.from([number >>> 24, (number >>> 16) & 255, (number >>> 8) & 255, number & 255]);

describe('UPL12: films of action cameras', () => {
  const pictures = randoms(9, 700);
  const sounds = randoms(5, 90);
  const places = Array.from({ length: 7 }, (_, n) => Buffer.from(`DEVC GPS5 52.5${n} 13.4${n} secret`));
  const clocks = [Buffer.from('10:11:12:13')];
  const tracks = [
    {
      track_id: 1,
      handler: 'vide',
      format: 'avc1',
      samples: pictures,
      per_chunk: 2,
      tref: box('tref', box('tmcd', u32(3)), box('sync', u32(2))),
    },
    { track_id: 2, handler: 'soun', format: 'mp4a', samples: sounds, per_chunk: 3 },
    { track_id: 3, handler: 'tmcd', format: 'tmcd', samples: clocks, per_chunk: 1 },
    { track_id: 4, handler: 'meta', format: 'gpmd', samples: places, per_chunk: 2 },
    { track_id: 5, handler: 'camm', format: 'camm', samples: places, per_chunk: 7 },
  ];
  const talk = {
    moov: [
      box('udta', box('\xa9xyz', '\0\x12\x15\xc7+52.5+013.4/'), box('FIRM', 'HD9.01')),
      box('meta', 'com.apple.quicktime.location.ISO6709'),
      box('NEXT', 'HERO12'),
    ],
    top: [
      box('uuid', 'XMP +52.5'),
      box('free', 'Exif of a preview'),
      box('skip', 'Exif'),
      box('XMP_', '<x:xmpmeta>52.5'),
      Buffer.concat([u32(1), Buffer.from('meta'), Buffer.from([0, 0, 0, 0, 0, 0, 0, 22]), Buffer.from('Camera')]),
    ],
    trailer: Buffer.from('8db42d694ccc418790edff439fe026bf 52.5 Insta360'),
  };
  const secrets = ['GPS5', '52.5', 'secret', '10:11:12:13', 'GoPro', 'HD9.01', 'location', 'HERO12', 'XMP', 'Camera', 'Insta360', 'Exif'];

  test('where it was at each moment, when, and what it is: all of it is gone; what is seen and heard stays, where it was', async () => {
    const original = film(tracks, talk);
    expect(leaks(original, secrets)).toEqual(secrets);
    const { clean, facts } = await cleaned(original, lookAtMovie);
    expect(facts).toEqual({ duration: 5, width: 640, height: 480 });
    expect(leaks(clean, secrets)).toEqual([]);
    for (const sample of [...pictures, ...sounds]) expect(clean.indexOf(sample)).toBe(original.indexOf(sample));
    for (const time of [1, 2, 3, 4, 5, 6]) expect(clean.includes(u32(3_900_000_000 + time))).toBe(false);
    for (const kept of ['avc1', 'mp4a', 'stco', 'sync']) expect(clean.includes(kept)).toBe(true);
    for (const gone of ['gpmd', 'camm', 'tmcd']) expect(clean.includes(gone)).toBe(false);
  });

  test('a track whose tables lie is an error of ours, and costs no more than a file may', async () => {
    const original = film(tracks);
    const at = original.indexOf('gpmd');
    for (const table of ['stsc', 'stsz', 'stco']) {
      const from = original.indexOf(table, at, 'latin1');
      for (let n = 4; n < 28; n += 4)
        for (const value of [0, 1, 0x7fffffff, 0xffffffff]) {
          const broken = Buffer.from(original);
          broken.writeUInt32BE(value, from + n);
          await lookAtMovie(readOf(broken), broken.length).catch((error: Error) => expect(error.name).toBe('RangeError'));
        }
    }
  });

  test('many small boxes are read together; more than a film has are refused', async () => {
    let reads = 0;
    const counted =
      (bytes: Buffer): ReadRange =>
      async (offset, length) => {
        reads++;
        return bytes.subarray(offset, offset + length);
      };
    const many = (count: number) => Buffer.concat([film(tracks), ...Array.from({ length: count }, () => box('free'))]);
    const some = many(10_000);
    await lookAtMovie(counted(some), some.length);
    expect(reads).toBeLessThan(10);
    const more = many(30_000);
    await expect(lookAtMovie(readOf(more), more.length)).rejects.toThrow('too many boxes');
  });
});

describe('UPL12: WebM and Matroska', () => {
  const float = Buffer.alloc(8);
  float.writeDoubleBE(2_500);
  const info = element(
    0x1549a966,
    Buffer.concat([
      element(0xbf, 'crc!'),
      element(0x2ad7b1, Buffer.from([0x0f, 0x42, 0x40])),
      element(0x4489, float),
      element(0x4461, 'SECRET:8'),
      element(0x7ba9, 'SECRET title'),
      element(0x4d80, 'SECRET muxer'),
      element(0x5741, 'SECRET camera'),
    ]),
  );
  const tracks = element(
    0x1654ae6b,
    element(
      0xae,
      Buffer.concat([
        element(0xd7, '\x01'),
        element(0x536e, 'SECRET lens'),
        element(0xe0, Buffer.concat([element(0xb0, Buffer.from([2, 128])), element(0xba, Buffer.from([1, 224]))])),
      ]),
    ),
  );
  const block = element(0xa3, randomBytes(500));
  const tags = element(0x1254c367, element(0x7373, 'SECRET location +52.5'));
  const head = element(0x1a45dfa3, element(0x4282, 'webm'));
  const attached = element(0x1941a469, 'SECRET Exif');
  const children = (length?: 'unknown') => [
    info,
    tracks,
    element(0x1f43b675, Buffer.concat([element(0xe7, '\0'), block]), length),
    attached,
    tags,
  ];

  test.each([undefined, 'unknown'] as const)('tags, attachments and who wrote it become empty space; lengths are %s', async (length) => {
    const original = Buffer.concat([head, element(0x18538067, Buffer.concat(children(length)), length)]);
    expect(sniff(original, 'text/plain').mime).toBe('video/webm');
    const { clean, facts } = await cleaned(original, lookAtMatroska);
    expect(facts).toEqual({ duration: 2.5, width: 640, height: 480 });
    expect(leaks(clean, ['SECRET', '52.5', 'crc!'])).toEqual([]);
    expect(clean.indexOf(block)).toBe(original.indexOf(block));
    expect(clean.subarray(0, head.length).equals(head)).toBe(true);
  });

  test('noise in the place of anything is an error of ours', async () => {
    const original = Buffer.concat([head, element(0x18538067, Buffer.concat(children()))]);
    for (let at = 0; at < original.length; at++)
      for (const value of [0, 0x80, 0xff]) {
        const broken = Buffer.from(original.subarray(0, at % 3 === 0 ? at + 1 : undefined));
        broken[at] = value;
        await lookAtMatroska(readOf(broken), broken.length).catch((error: Error) => expect(error.name).toBe('RangeError'));
      }
  });
});

const run = (input: Buffer | undefined, ...args: string[]) =>
  spawnSync('ffmpeg', ['-v', 'error', ...args], { input: input ?? '', maxBuffer: 2 ** 26 }).stdout;
const ffmpeg = spawnSync('ffmpeg', ['-version']).status === 0;
if (!ffmpeg) console.warn('tests of real films are left out: ffmpeg is not here');
(ffmpeg ? test : test.skip).each([
  ['mov', 'video/quicktime', ['-c:v', 'mpeg4', '-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov+use_metadata_tags']],
  ['mp4', 'video/mp4', ['-c:v', 'mpeg4', '-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov']],
  ['matroska', 'video/webm', ['-c:v', 'mpeg4', '-c:a', 'pcm_s16le']],
])('UPL12: a real film, %s: it plays as before, picture for picture (left out without ffmpeg)', async (format, mime, codecs) => {
  const made = ['-f', 'lavfi', '-i', 'testsrc=size=320x180:rate=5:duration=2', '-f', 'lavfi', '-i', 'sine=duration=2'];
  const told = ['-metadata', 'location=+52.5+013.4/', '-metadata', 'title=SECRET', '-metadata', 'creation_time=2020-01-02T03:04:05Z'];
  const original = run(undefined, ...made, ...codecs, ...told, '-f', format, 'pipe:1');
  expect(original.includes('SECRET')).toBe(true);
  expect(sniff(original.subarray(0, 4_096), '').mime).toBe(mime);
  const { clean } = await cleaned(original, mime === 'video/webm' ? lookAtMatroska : lookAtMovie);
  expect(leaks(clean, ['SECRET', '52.5', 'Lavf', '2020-01-02'])).toEqual([]);
  const frames = (bytes: Buffer) => run(bytes, '-i', 'pipe:0', '-map', '0', '-f', 'framemd5', 'pipe:1').toString();
  const pictures = frames(original);
  expect(pictures.split('\n').length).toBeGreaterThan(20);
  expect(frames(clean)).toBe(pictures);
});
