import { createHash, randomBytes } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { memoryHub, subjects } from '@iris/bus';
import { memoryMedia } from '@iris/media';
import type { AgentId, MediaId, ObjectId, SessionId, TenantId } from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { manualClock, seededRandom } from '@iris/runtime/testing';
import { type MediaRow, memoryStore } from '@iris/store';
import { describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { pngChunk } from '../../../../tests/corpus/png.js';
import { cleanMedia } from './clean.js';
import { look } from './look.js';
import { processMedia } from './process.js';
import { sniff } from './sniff.js';
import { strip } from './strip.js';
import { lookAtMovie } from './strip-movie.js';
import { lookAtTiff } from './strip-tiff.js';

const tenant_id = 'tenant' as TenantId;
const session_id = 's1' as SessionId;
const limits = { pixels: 10_000_000, frames: 50, thumb_pixels: 256 };
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** A picture that can be told from others, and from itself when it is turned. */
const picture = (width = 120, height = 80) =>
  sharp({ create: { width, height, channels: 3, background: { r: 200, g: 30, b: 30 } } }).composite([
    { input: { create: { width: width / 2, height: height / 4, channels: 3, background: { r: 0, g: 0, b: 250 } } }, top: 0, left: 0 },
  ]);
const gps = {
  IFD0: { Make: 'Secret Camera', Model: 'Secret 9', ImageDescription: 'my home' },
  IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '52/1 30/1 0/1', GPSLongitudeRef: 'E', GPSLongitude: '13/1 24/1 0/1' },
};
const withExif = (of: ReturnType<typeof picture>) => of.withExif(gps);
const animated = (frames: number) =>
  sharp(Buffer.concat(Array.from({ length: frames }, (_, n) => Buffer.alloc(20 * 20 * 3, n * 40))), {
    raw: { width: 20, height: 20 * frames, channels: 3, pageHeight: 20 },
  }).gif({ loop: 0, delay: Array.from({ length: frames }, () => 50) });

async function setting() {
  const clock = manualClock();
  const store = memoryStore(clock);
  const media = memoryMedia({ clock });
  const bus = memoryHub({ clock }).connect();
  await store.tenants.create({ tenant_id, name: 'T', agent_id: 'ag' as AgentId, at: 0 });
  const config = { media_image_bytes: 1024 * 1024, media_film_bytes: 1 };
  const studio = { look: (bytes: Uint8Array, mime: string) => look(bytes, mime, limits).catch(() => undefined), close: async () => {} };
  const deps = { store, media, bus, clock, random: seededRandom(1), log: silentLog, studio, config };
  let n = 0;
  const self = {
    ...deps,
    deps,
    /** An upload, and what has become of it. */
    async put(bytes: Uint8Array, said = 'image/png', kind = 'image'): Promise<{ row: MediaRow; bytes: Buffer }> {
      const [media_id, object_id] = [`md_${++n}` as MediaId, `ob_${n}` as ObjectId];
      const row: MediaRow = {
        tenant_id,
        media_id,
        object_id,
        media_ref: `mu_${n}`,
        device_id: 'phone' as MediaRow['device_id'],
        state: 'uploading',
        kind,
        mime: said,
        size: bytes.length,
        filename: 'a',
        sha256: '',
        uploaded_sha256: null,
        details: {},
        created_at: clock.now(),
        processed: false,
      };
      await store.media.begin(row, { stored_bytes: 2 ** 40, day_bytes: 2 ** 40 });
      const writer = await media.open(tenant_id, object_id);
      await writer.append(bytes);
      await store.media.complete(tenant_id, media_id, { object_id, ...(await writer.finish()) });
      await processMedia({ tenant_id, media_id, session_id }, deps);
      return self.get(media_id);
    },
    async get(media_id: string): Promise<{ row: MediaRow; bytes: Buffer }> {
      const row = (await store.media.get(tenant_id, media_id))!;
      const chunks: Uint8Array[] = [];
      for await (const chunk of (await media.read(tenant_id, row.object_id!))!.bytes) chunks.push(chunk);
      return { row, bytes: Buffer.concat(chunks) };
    },
  };
  return self;
}

describe('what a file is', () => {
  test.each([
    ['SVG with a script, as image/png', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', 'image/png', 'text/plain'],
    ['SVG in capitals behind a prologue', '<?xml version="1.0"?>\n<!DOCTYPE SVG>\n<SVG onload="alert(1)"/>', 'image/svg+xml', 'text/plain'],
    ['HTML, as image/jpeg', '<!doctype html><script>alert(1)</script>', 'image/jpeg', 'text/plain'],
    ['HTML, as HTML', '  <html><body onload=x>', 'text/html', 'text/plain'],
    ['HTML behind a mark of UTF-8', '\xef\xbb\xbf<html onload=x>', 'text/html', 'text/plain'],
    ['HTML in UTF-16', '\xff\xfe<\0h\0t\0m\0l\0>\0', 'text/html', 'application/octet-stream'],
    ['HTML that begins as a GIF', 'GIF89a=1;<script>alert(1)</script>', 'text/html', 'application/octet-stream'],
    ['XHTML', '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>', 'application/xhtml+xml', 'text/plain'],
    ['XML with a stylesheet that runs', '<?xml-stylesheet type="text/xsl" href="#x"?><a/>', 'text/xml', 'text/plain'],
    ['a page in one file', 'From: x\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related\r\n', 'message/rfc822', 'text/plain'],
    ['a module', '\0asm\x01\0\0\0', 'application/wasm', 'application/octet-stream'],
    ['a shortcut', '[InternetShortcut]\r\nURL=javascript:alert(1)', 'application/internet-shortcut', 'text/plain'],
    ['a script, as text/javascript', 'alert(1)', 'text/javascript', 'text/plain'],
    ['markdown', '# Title\n\ntext', 'text/markdown', 'text/markdown'],
    ['JSON with a charset', '{"a":1}', 'application/json; charset=utf-8', 'application/json'],
    ['zeros', '\0\0\0\0', 'video/mp4', 'application/octet-stream'],
    ['a program', '\x7fELF\x02\x01\x01', 'image/png', 'application/octet-stream'],
    ['PDF, as text', '%PDF-1.7 ...', 'text/plain', 'application/pdf'],
    ['zip-like', 'PK\x03\x04aaaa', 'image/webp', 'application/zip'],
    ['one byte', 'x', 'image/png', 'text/plain'],
  ])('UPL10 C96: %s', async (_, content, said, mime) => {
    const { put } = await setting();
    const { row } = await put(Buffer.from(content, 'latin1'), said);
    expect(row).toMatchObject({ kind: 'file', mime, processed: true });
    expect(row.details.thumb_media_id).toBeUndefined();
  });

  test('UPL10: by its beginning, whatever it is said to be', async () => {
    const head = (text: string) => sniff(Buffer.from(text, 'latin1'), 'text/html').mime;
    expect(head('\0\0\0\x18ftypM4A ....')).toBe('audio/mp4');
    expect(head('\0\0\0\x18ftypqt  ....')).toBe('video/quicktime');
    expect(head('\0\0\0\x18ftypisom....')).toBe('video/mp4');
    expect(head('\0\0\0\x18ftypheic....')).toBe('image/heic');
    expect(head('RIFF....WAVEfmt ')).toBe('audio/wav');
    expect(head('OggS....')).toBe('audio/ogg');
    expect(head('ID3\x04....')).toBe('audio/mpeg');
    const { put } = await setting();
    const jpeg = await picture().jpeg().toBuffer();
    expect((await put(jpeg, 'text/plain', 'file')).row).toMatchObject({
      kind: 'image',
      mime: 'image/jpeg',
      details: { width: 120, height: 80 },
    });
  });

  test('C96: a GIF that is a script too, and a picture with a page behind its end: what is behind it goes', async () => {
    const { put } = await setting();
    const gif = await animated(2).toBuffer();
    const polyglot = await put(Buffer.concat([gif, Buffer.from('*/;alert(1)//')]), 'text/javascript');
    expect(polyglot.row).toMatchObject({ kind: 'image', mime: 'image/gif' });
    expect(polyglot.bytes.includes('alert')).toBe(false);
    const png = await picture().png().toBuffer();
    const tailed = await put(Buffer.concat([png, Buffer.from('<script>alert(1)</script>')]));
    expect(tailed.bytes.equals(png)).toBe(true);
  });
});

describe('UPL12: pictures', () => {
  test.each(['jpeg', 'png', 'webp', 'gif'] as const)('%s: location and device go, the pixels stay as they were', async (format) => {
    const { put } = await setting();
    const original =
      format === 'gif' ? gifWithComment(await picture().gif().toBuffer()) : await withExif(picture()).toFormat(format).toBuffer();
    const { row, bytes } = await put(original, `image/${format}`);
    expect(row).toMatchObject({ kind: 'image', mime: `image/${format}`, size: bytes.length, sha256: sha256(bytes) });
    expect(row.uploaded_sha256).toBe(sha256(original));
    expect(bytes.length).toBeLessThan(original.length);
    expect((await sharp(bytes).metadata()).exif).toBeUndefined();
    for (const secret of ['Secret', 'my home', 'GPS']) expect(bytes.includes(secret)).toBe(false);
    expect((await sharp(bytes).raw().toBuffer()).equals(await sharp(original).raw().toBuffer())).toBe(true);
    expect(row.details).toMatchObject({ width: 120, height: 80, thumbhash: expect.any(String), thumb_media_id: `${row.media_id}_t` });
  });

  test('one without any is left as it is, byte for byte', async () => {
    const { put } = await setting();
    for (const format of ['jpeg', 'png', 'webp'] as const) {
      const original = await picture().toFormat(format).toBuffer();
      expect((await put(original)).bytes.equals(original)).toBe(true);
    }
  });

  test('which way is up is kept; width and height are those that are seen', async () => {
    const { put } = await setting();
    const lying = await picture().withMetadata({ orientation: 6 }).withExifMerge(gps).jpeg().toBuffer();
    const { row, bytes } = await put(lying, 'image/jpeg');
    expect((await sharp(bytes).metadata()).orientation).toBe(6);
    expect(bytes.includes('Secret')).toBe(false);
    expect(row.details).toMatchObject({ width: 80, height: 120 });
  });

  test('AVIF: Exif is overwritten where it stands', async () => {
    const { put } = await setting();
    const original = await withExif(picture()).avif({ quality: 60, effort: 0 }).toBuffer();
    expect(original.includes('Secret')).toBe(true);
    const { row, bytes } = await put(original, 'image/avif');
    expect(bytes.includes('Secret') || bytes.includes('my home')).toBe(false);
    expect(row).toMatchObject({ mime: 'image/avif', size: original.length, details: { width: 120, height: 80 } });
  });

  test('TIFF: what tells is overwritten where it stands, the pixels stay', async () => {
    const { put } = await setting();
    const original = tiffThatTells(await picture().tiff({ compression: 'none' }).toBuffer());
    expect((await sharp(original).metadata()).width).toBe(120);
    const { row, bytes } = await put(original, 'image/tiff');
    for (const secret of ['Secret', 'my home', '52.5']) expect(original.includes(secret) && !bytes.includes(secret)).toBe(true);
    expect((await sharp(bytes).raw().toBuffer()).equals(await sharp(original).raw().toBuffer())).toBe(true);
    expect(row).toMatchObject({ kind: 'file', mime: 'image/tiff', size: original.length });
  });

  test('TIFF: directories that point to themselves, and values that overlap, cost no more than a file may', async () => {
    const entries = 4_096;
    const build = (tag: number, type: number, count: number, value: (n: number) => number, size: number) => {
      const file = Buffer.alloc(size);
      file.write('II*\0', 0, 'latin1');
      file.writeUInt32LE(8, 4);
      file.writeUInt16LE(entries, 8);
      for (let n = 0; n < entries; n++) {
        const at = 10 + n * 12;
        file.writeUInt16LE(tag, at);
        file.writeUInt16LE(type, at + 2);
        file.writeUInt32LE(count, at + 4);
        file.writeUInt32LE(value(n), at + 8);
      }
      return file;
    };
    const size = 128 * 1024;
    // Each entry leads to a directory; all to the same, to the first, or each to another.
    for (const value of [() => 8, () => 60_000, (n: number) => 60_000 + 2 * n]) {
      for (const [tag, count] of [
        [0x8825, 1],
        [0x014a, 1],
        [0x014a, 30],
      ] as const) {
        const file = build(tag, 4, count, value, size);
        let reads = 0;
        const read = async (offset: number, length: number) => {
          reads++;
          return file.subarray(offset, offset + length);
        };
        await lookAtTiff(read, size).catch((error: unknown) => expect(error).toBeInstanceOf(RangeError));
        expect(reads).toBeLessThan(300);
      }
    }
    const told = build(0x010e, 2, 60_000, () => 60_000, size);
    await expect(lookAtTiff(async (offset, length) => told.subarray(offset, offset + length), size)).rejects.toThrow('too much');
  });

  test('a raw picture keeps what it is developed by, and loses its place', async () => {
    const { put } = await setting();
    const { bytes } = await put(rawPicture(), 'application/octet-stream', 'file');
    expect(bytes.includes('Camera')).toBe(true);
    for (const secret of ['52.5', 'Owner']) expect(bytes.includes(secret)).toBe(false);
  });

  test('one that is too large to be cleaned is withheld; one that is not whole loses its Exif all the same', async () => {
    const { put } = await setting();
    const large = Buffer.concat([await withExif(picture()).jpeg().toBuffer(), Buffer.alloc(1024 * 1024)]);
    expect((await put(large, 'image/jpeg')).row).toMatchObject({ mime: 'application/octet-stream', details: { withheld: true } });
    const cut = (await withExif(picture(300, 300)).jpeg().toBuffer()).subarray(0, -20);
    expect(cut.includes('Secret')).toBe(true);
    const { row, bytes } = await put(cut, 'image/jpeg');
    expect(row).toMatchObject({ mime: 'application/octet-stream' });
    expect(row.details.withheld).toBeUndefined();
    for (const secret of ['Secret', 'my home']) expect(bytes.includes(secret)).toBe(false);
  });

  test('a preview is a file beside it, small, and goes with it', async () => {
    const { put, get, store, media, deps, clock } = await setting();
    const { row } = await put(await picture(1_000, 500).png().toBuffer());
    const thumb = await get(row.details.thumb_media_id as string);
    expect(thumb.row).toMatchObject({ kind: 'image', mime: 'image/webp', details: { width: 256, height: 128 }, processed: true });
    expect(await sharp(thumb.bytes).metadata()).toMatchObject({ format: 'webp', width: 256, height: 128 });
    await clock.advance(100_000);
    await cleanMedia({ ...deps, jobs: undefined as never }, { media_loose_ms: 50_000, media_offered_ms: 50_000 });
    for (const one of [row, thumb.row]) {
      expect(await store.media.get(tenant_id, one.media_id)).toBeUndefined();
      expect(await media.stat(tenant_id, one.object_id!)).toBeUndefined();
    }
    expect(await store.media.removing(10)).toEqual([]);
  });

  test.each(['gif', 'webp'] as const)('animated %s: all its frames stay, what tells goes, the preview is the first', async (format) => {
    const { put, get } = await setting();
    const moving =
      format === 'gif'
        ? animated(6)
        : sharp(await animated(6).toBuffer(), { animated: true })
            .withExif(gps)
            .webp({ lossless: true });
    const original = await moving.toBuffer();
    const { row, bytes } = await put(original, `image/${format}`);
    expect(bytes.includes('Secret')).toBe(false);
    const frames = (of: Buffer) => sharp(of, { animated: true }).raw().toBuffer();
    expect((await sharp(bytes, { animated: true }).metadata()).pages).toBe(6);
    expect((await frames(bytes)).equals(await frames(original))).toBe(true);
    expect(row).toMatchObject({ kind: 'image', mime: `image/${format}`, details: { width: 20, height: 20 } });
    const preview = await sharp((await get(row.details.thumb_media_id as string)).bytes).metadata();
    expect([preview.pages ?? 1, preview.width]).toEqual([1, 20]);
  });

  test('animated PNG: its frames stay, what stands between them and tells goes', async () => {
    const { put } = await setting();
    const still = await picture(20, 20).png().toBuffer();
    const pixels = still.subarray(still.indexOf('IDAT') + 4, still.indexOf('IEND') - 8);
    const control = (n: number) => {
      const out = Buffer.alloc(26);
      out.writeUInt32BE(n, 0);
      out.writeUInt32BE(20, 4);
      out.writeUInt32BE(20, 8);
      return pngChunk('fcTL', out);
    };
    const number = (n: number) => Buffer.from([0, 0, 0, n]);
    const behindHeader = still.indexOf('IHDR') + 4 + 13 + 4;
    const moving = [
      pngChunk('acTL', Buffer.concat([number(2), number(0)])),
      control(0),
      pngChunk('IDAT', pixels),
      control(1),
      pngChunk('fdAT', Buffer.concat([number(2), pixels])),
    ];
    const end = pngChunk('IEND', Buffer.alloc(0));
    const build = (...told: Buffer[]) => Buffer.concat([still.subarray(0, behindHeader), ...moving, ...told, end]);
    const { row, bytes } = await put(build(pngChunk('tEXt', Buffer.from('Comment\0Secret')), pngChunk('eXIf', Buffer.from('MM\0*Secret'))));
    expect(bytes.equals(build())).toBe(true);
    expect(row).toMatchObject({ kind: 'image', mime: 'image/png', details: { width: 20, height: 20, thumbhash: expect.any(String) } });
  });

  test('told to whoever waits, once it is done; done again it changes nothing', async () => {
    const { put, bus, deps } = await setting();
    const heard: string[] = [];
    bus.subscribe(subjects.mediaReady(session_id), (data) => void heard.push(Buffer.from(data).toString()));
    const first = await put(await picture().png().toBuffer());
    await processMedia({ tenant_id, media_id: first.row.media_id, session_id }, deps);
    await deps.clock.settle();
    expect(heard).toEqual(Array.from({ length: 2 }, () => JSON.stringify({ tenant_id, media_id: first.row.media_id })));
    expect(await deps.store.media.get(tenant_id, first.row.media_id)).toEqual(first.row);
  });
});

describe('bombs, and what is not whole', () => {
  /** A PNG that says it has so many pixels, in a few bytes. */
  function bomb(width: number, height: number): Buffer {
    const header = Buffer.alloc(13);
    header.writeUInt32BE(width, 0);
    header.writeUInt32BE(height, 4);
    header.set([8, 0, 0, 0, 0], 8);
    const data = deflateSync(Buffer.alloc(1_000_000), { level: 9 });
    return Buffer.concat([
      Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
      pngChunk('IHDR', header),
      pngChunk('IDAT', data),
      pngChunk('IEND', Buffer.alloc(0)),
    ]);
  }

  test.each([
    ['a picture of 900 megapixels in a kilobyte', async () => bomb(30_000, 30_000)],
    ['one of the largest that can be said', async () => bomb(2 ** 31 - 1, 2 ** 31 - 1)],
    ['too many frames', () => animated(60).toBuffer()],
    [
      'too many frames of a WebP',
      async () =>
        sharp(await animated(60).toBuffer(), { animated: true })
          .webp()
          .toBuffer(),
    ],
    ['a truncated AVIF', async () => (await picture().avif({ effort: 0 }).toBuffer()).subarray(0, 250)],
    ['a truncated TIFF', async () => (await picture().tiff({ compression: 'none' }).toBuffer()).subarray(0, 500)],
    ['a truncated WebM', async () => Buffer.from('\x1aE\xdf\xa3\x84webm\x18S\x80g\x88\x15I\xa9f', 'latin1')],
    ['a truncated JPEG', async () => (await picture(400, 400).jpeg().toBuffer()).subarray(0, 900)],
    ['a truncated PNG', async () => (await picture(400, 400).png().toBuffer()).subarray(0, 200)],
    ['a truncated WebP', async () => (await picture(400, 400).webp().toBuffer()).subarray(0, 100)],
    ['a truncated GIF', async () => (await animated(5).toBuffer()).subarray(0, 100)],
    ['a magic number and nothing else', async () => Buffer.from('\xff\xd8\xff', 'latin1')],
    ['a magic number and noise', async () => Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(5_000)])],
    ['an MP4 whose boxes are larger than it', async () => Buffer.from('\0\0\0\x18ftypisom\0\0\0\0isommp42\x7f\xff\xff\xffmoov', 'latin1')],
  ])('UPL12: %s is a file like any other, for devices too', async (_, make) => {
    const { put } = await setting();
    const original = await make();
    const { row } = await put(original);
    expect(row).toMatchObject({ kind: 'file', mime: 'application/octet-stream', processed: true });
    expect(row.details.thumb_media_id).toBeUndefined();
  });

  test('a deep SVG, and a zip of zeros, are never opened', async () => {
    const { put } = await setting();
    const deep = Buffer.from(`<svg>${'<g>'.repeat(100_000)}`);
    expect((await put(deep, 'image/svg+xml')).row).toMatchObject({ kind: 'file', mime: 'text/plain' });
    await expect(look(deep, 'image/svg+xml', limits)).rejects.toThrow();
    await expect(look(deep, 'image/png', limits)).rejects.toThrow();
  });

  test('noise in the place of anything: an error of ours, in no time, never another', async () => {
    const samples = await Promise.all(
      (['jpeg', 'png', 'webp', 'gif'] as const).map(
        async (format) => [format, await withExif(picture()).toFormat(format).toBuffer()] as const,
      ),
    );
    const random = seededRandom(7);
    for (const [format, bytes] of samples)
      for (let round = 0; round < 200; round++) {
        const broken = Buffer.from(bytes.subarray(0, 1 + Math.floor(random.unit() * bytes.length)));
        for (let n = 0; n < 5; n++) broken[Math.floor(random.unit() * broken.length)] = Math.floor(random.unit() * 256);
        try {
          strip(broken, `image/${format}`);
        } catch (error) {
          expect((error as Error).name).toBe('RangeError');
        }
      }
  });
});

describe('movies', () => {
  const box = (type: string, ...content: (Buffer | string)[]) => {
    const body = Buffer.concat(content.map((one) => (typeof one === 'string' ? Buffer.from(one, 'latin1') : one)));
    const head = Buffer.alloc(8);
    head.writeUInt32BE(body.length + 8, 0);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, body]);
  };
  const mvhd = () => {
    const body = Buffer.alloc(100);
    body.writeUInt32BE(3_900_000_000, 4);
    body.writeUInt32BE(600, 12);
    body.writeUInt32BE(7_530, 16);
    return box('mvhd', body);
  };
  const tkhd = (width: number, height: number) => {
    const body = Buffer.alloc(84);
    body.writeUInt32BE(width * 65_536, 76);
    body.writeUInt32BE(height * 65_536, 80);
    return box('tkhd', body);
  };
  const movie = () =>
    Buffer.concat([
      box('ftyp', 'isom\0\0\0\0isommp42'),
      box('mdat', randomBytes(10_000)),
      box(
        'moov',
        mvhd(),
        box('trak', tkhd(640, 480), box('udta', box('name', 'secret'))),
        box('udta', box('\xa9xyz', '\0\x12\x15\xc7+52.5+013.4/')),
        box('meta', 'Secret Camera'),
      ),
      box('uuid', 'XMP secret'),
    ]);

  test('UPL12: location, camera and time become empty space; duration and dimensions are told; the rest stays', async () => {
    const { put } = await setting();
    const original = movie();
    const { row, bytes } = await put(original, 'video/mp4', 'video');
    expect(row).toMatchObject({
      kind: 'video',
      mime: 'video/mp4',
      size: original.length,
      details: { duration: 12.55, width: 640, height: 480 },
    });
    expect(bytes.length).toBe(original.length);
    for (const secret of ['52.5', 'Secret', 'secret']) expect(bytes.includes(secret)).toBe(false);
    expect(bytes.subarray(0, 10_036).equals(original.subarray(0, 10_036))).toBe(true);
    const read = async (at: number, length: number) => bytes.subarray(at, at + length);
    expect((await lookAtMovie(read, bytes.length)).duration).toBe(12.55);
  });
});

/** The same TIFF with a directory that says more, behind it: who made it with what, and a place. */
function tiffThatTells(tiff: Buffer): Buffer {
  const old = tiff.readUInt32LE(4);
  const count = tiff.readUInt16LE(old);
  const at = tiff.length + (tiff.length % 2);
  const texts = at + 2 + (count + 3) * 12 + 4;
  const entry = (tag: number, type: number, values: number, value: number) => {
    const out = Buffer.alloc(12);
    out.writeUInt16LE(tag, 0);
    out.writeUInt16LE(type, 2);
    out.writeUInt32LE(values, 4);
    out.writeUInt32LE(value, 8);
    return out;
  };
  const kept = Array.from({ length: count }, (_, n) => tiff.subarray(old + 2 + n * 12, old + 14 + n * 12));
  const all = [...kept, entry(0x010e, 2, 8, texts), entry(0x010f, 2, 14, texts + 8), entry(0x8825, 4, 1, texts + 22)];
  all.sort((one, other) => one.readUInt16LE(0) - other.readUInt16LE(0));
  const head = Buffer.alloc(2);
  head.writeUInt16LE(all.length, 0);
  const gps = Buffer.concat([Buffer.from([1, 0]), entry(2, 2, 5, texts + 40), Buffer.alloc(4), Buffer.from('52.5\0')]);
  const out = Buffer.concat([
    tiff,
    Buffer.alloc(at - tiff.length),
    head,
    ...all,
    Buffer.alloc(4),
    Buffer.from('my home\0Secret Camera\0'),
    gps,
  ]);
  out.writeUInt32LE(at, 4);
  return out;
}

/** A TIFF as cameras build it: its first picture is a small one, a directory with the place hangs from it. */
function rawPicture(): Buffer {
  const out = Buffer.alloc(400);
  out.write('II*\0', 0, 'latin1');
  out.writeUInt32LE(8, 4);
  const directory = (at: number, entries: [tag: number, type: number, count: number, value: number][]) => {
    out.writeUInt16LE(entries.length, at);
    for (const [n, [tag, type, count, value]] of entries.entries()) {
      const entry = at + 2 + n * 12;
      out.writeUInt16LE(tag, entry);
      out.writeUInt16LE(type, entry + 2);
      out.writeUInt32LE(count, entry + 4);
      out.writeUInt32LE(value, entry + 8);
    }
  };
  directory(8, [
    [0x00fe, 4, 1, 1],
    [0x010f, 2, 7, 200],
    [0x013b, 2, 6, 220],
    [0x8825, 4, 1, 100],
  ]);
  directory(100, [[2, 2, 5, 240]]);
  out.write('Camera\0', 200, 'latin1');
  out.write('Owner\0', 220, 'latin1');
  out.write('52.5\0', 240, 'latin1');
  return out;
}

function gifWithComment(gif: Buffer): Buffer {
  const table = (gif[10]! & 0x80) === 0 ? 0 : 3 * 2 ** ((gif[10]! & 7) + 1);
  const comment = Buffer.from('\x21\xfe\x0dSecret camera\x00', 'latin1');
  return Buffer.concat([gif.subarray(0, 13 + table), comment, gif.subarray(13 + table)]);
}
