import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { box } from '../../../../tests/corpus/films.js';
import { type TiffDirectory, tiff } from '../../../../tests/corpus/tiff.js';
import { sniff } from './sniff.js';
import { isStrippable, strip } from './strip.js';
import { lookAtTiff } from './strip-tiff.js';

async function cleaned(bytes: Buffer): Promise<Buffer> {
  const { patches } = await lookAtTiff(async (offset, length) => bytes.subarray(offset, offset + length), bytes.length);
  const out = Buffer.from(bytes);
  for (const patch of patches) patch.bytes.copy(out, patch.offset);
  expect(out.length).toBe(bytes.length);
  return out;
}
const mimeOf = (bytes: Buffer) => sniff(bytes.subarray(0, 4_096), 'text/plain').mime;
const leaks = (bytes: Buffer, secrets: readonly string[]) => secrets.filter((secret) => bytes.includes(secret, 0, 'latin1'));

const where: TiffDirectory = [
  [2, '52.5 north'],
  [4, '13.4 east'],
];
const how: TiffDirectory = [
  [0x9003, '2020:01:02'],
  [0xa005, [[[1, 'R98 of it']]]],
  [0x8825, [where]],
];
const page = (n: number): TiffDirectory => [
  [0x0100, 640],
  [0x010e, `my home ${n}`],
  [0x010f, 'Secret Camera'],
  [0x0131, 'Kept software?'],
  [0x8769, [how]],
  [0x8825, [where]],
  [
    0x014a,
    [
      [
        [0x0100, 64],
        [0x013b, 'The owner of it'],
        [0x8825, [where]],
      ],
      [
        [0x0101, 64],
        [0x02bc, 'XMP of the small one'],
      ],
    ],
  ],
  [0x011a, `resolution ${n}`],
];
const secrets = ['52.5', '13.4', '2020:01', 'R98', 'my home', 'Secret', 'owner', 'XMP of'];

describe('UPL12: TIFF in all its forms', () => {
  const forms = [true, false].flatMap((little) => [{ little }, { little, big: true }]);
  test.each(forms)('%j: every directory, and those that hang from it, lose what tells, and keep the rest', async (form) => {
    const original = tiff(form, [page(1), page(2), page(3)]);
    expect(mimeOf(original)).toBe('image/tiff');
    expect(leaks(original, secrets)).toEqual(secrets);
    const clean = await cleaned(original);
    expect(leaks(clean, secrets)).toEqual([]);
    for (const n of [1, 2, 3]) expect(clean.includes(`resolution ${n}`)).toBe(true);
    expect((await cleaned(clean)).equals(clean)).toBe(true);
  });

  test.each([
    ['Panasonic', { little: true, magic: 0x55 }],
    ['Olympus', { little: true, magic: 0x4f52 }],
    ['Olympus, of old', { little: true, magic: 0x5352 }],
    ['Olympus, the other way', { little: false, magic: 0x4f52 }],
  ])('a raw picture of %s loses its place and its owner, and keeps what it is developed by', async (_, form) => {
    const original = tiff(form, [page(1)]);
    expect(mimeOf(original)).toBe('image/x-raw');
    const clean = await cleaned(original);
    expect(leaks(clean, ['52.5', '13.4', 'my home', 'owner'])).toEqual([]);
    expect(leaks(clean, ['Secret Camera', 'resolution 1'])).toHaveLength(2);
  });

  test('with addresses of eight bytes, as a real writer makes it: the pixels stay', async () => {
    const picture = sharp({ create: { width: 120, height: 80, channels: 3, background: { r: 200, g: 30, b: 30 } } });
    const xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF>Secret 52.5</rdf:RDF></x:xmpmeta>';
    const original = await picture.withXmp(xmp).tiff({ bigtiff: true, compression: 'lzw' }).toBuffer();
    expect([original.readUInt16LE(2), original.includes('Secret')]).toEqual([43, true]);
    const clean = await cleaned(original);
    expect(clean.includes('Secret')).toBe(false);
    expect((await sharp(clean).raw().toBuffer()).equals(await sharp(original).raw().toBuffer())).toBe(true);
  });

  test('a book of many pages is one', async () => {
    const original = tiff(
      { little: true },
      Array.from({ length: 200 }, (_, n) => [...page(n), [0x0117, 'x'.repeat(20_000)]] as TiffDirectory),
    );
    const clean = await cleaned(original);
    expect(leaks(clean, secrets)).toEqual([]);
    expect(clean.includes('resolution 199')).toBe(true);
  });
});

describe('UPL12: pictures of boxes', () => {
  const pixels = box('mdat', randomBytes(3_000));
  const exif = tiff({ little: false }, [page(1)]);
  const items = box('mdat', 'Exif\0\0', exif, '<x:xmpmeta>XMP of 52.5</x:xmpmeta>', '<rdf:RDF>XMP of 13.4</rdf:RDF>', randomBytes(500));

  test('HEIC: Exif and XMP are overwritten where they stand; nothing else is touched, nothing moves', () => {
    const original = Buffer.concat([box('ftyp', 'heic\0\0\0\0mif1heic'), box('meta', '\0\0\0\0', box('iinf', 'Exif')), pixels, items]);
    expect([mimeOf(original), leaks(original, secrets)]).toEqual(['image/heic', secrets]);
    const clean = strip(original, 'image/heic')!;
    expect(leaks(clean, secrets)).toEqual([]);
    expect(clean.length).toBe(original.length);
    const behind = original.indexOf(pixels) + pixels.length;
    expect(clean.subarray(0, behind + 8).equals(original.subarray(0, behind + 8))).toBe(true);
    expect(clean.subarray(-500).equals(original.subarray(-500))).toBe(true);
  });

  test.each([
    [
      'image/jxl',
      'JXL ',
      box('jxlp', randomBytes(3_000)),
      [box('Exif', '\0\0\0\0', exif), box('xml ', 'XMP of'), box('brob', 'Exif Secret'), box('jbrd', 'Secret')],
    ],
    ['image/jp2', 'jP  ', box('jp2c', randomBytes(3_000)), [box('uuid', exif), box('xml ', 'XMP of'), box('uuid', 'GPS Secret')]],
  ])('%s: what is no part of the picture becomes empty space', (mime, name, picture, told) => {
    const original = Buffer.concat([box(name, '\r\n\x87\n'), box('ftyp', 'any \0\0\0\0'), picture, ...told]);
    expect([mimeOf(original), isStrippable(mime), leaks(original, secrets)]).toEqual([mime, true, secrets]);
    const clean = strip(original, mime)!;
    expect(leaks(clean, secrets)).toEqual([]);
    expect(clean.length).toBe(original.length);
    const behind = original.indexOf(picture) + picture.length;
    expect(clean.subarray(0, behind).equals(original.subarray(0, behind))).toBe(true);
    expect(() => strip(original.subarray(0, -5), mime)).toThrow(RangeError);
  });
});
