import { boxesIn } from './movie-boxes.js';
import { blankExif } from './strip-exif.js';

/** What {@link strip} knows, whether it can be decoded here or not. */
export const isStrippable = (mime: string): boolean => mime.startsWith('image/') && strippable.has(mime.slice(6));
const strippable = new Set(['jpeg', 'png', 'webp', 'gif', 'avif', 'heic', 'jxl', 'jp2']);

/**
 * The same picture without what says where, when and with what it was taken: Exif (of which only the way up is left), XMP, IPTC, comments.
 * The pixels stay as they were, bit for bit. Whatever stands behind the picture's end goes as well.
 * @returns undefined when there was nothing to take out
 * @throws RangeError when it is not built as its type says
 */
export function strip(bytes: Buffer, mime: string): Buffer | undefined {
  const parts = stripped(bytes, mime);
  if (parts === undefined) return undefined;
  const clean = Buffer.concat(parts);
  return clean.equals(bytes) ? undefined : clean;
}

function stripped(bytes: Buffer, mime: string): Buffer[] | undefined {
  switch (mime) {
    case 'image/jpeg':
      return jpeg(bytes);
    case 'image/png':
      return png(bytes);
    case 'image/webp':
      return webp(bytes);
    case 'image/gif':
      return gif(bytes);
    case 'image/avif':
    case 'image/heic':
      return [blankExif(bytes)];
    case 'image/jxl':
      return [boxes(bytes, ['JXL ', 'ftyp', 'jxll', 'jxli', 'jxlc', 'jxlp'])];
    case 'image/jp2':
      return [boxes(bytes, ['jP  ', 'ftyp', 'jp2h', 'jp2c'])];
    default:
      return undefined;
  }
}

const broken = (what: string) => new RangeError(`not whole: ${what}`);
const cut = (bytes: Buffer, from: number, to: number): Buffer => {
  if (to > bytes.length || to < from) throw broken('it ends too early');
  return bytes.subarray(from, to);
};

/** Others than those become empty space. */
function boxes(bytes: Buffer, kept: readonly string[]): Buffer {
  const out = Buffer.from(bytes);
  for (const { type, at, body, end } of boxesIn(out, 0, out.length)) {
    if (kept.includes(type)) continue;
    out.write('free', at + 4, 'latin1');
    out.fill(0, body, end);
  }
  return out;
}

/** Segments up to the first scan; then all scans, to the end of the image. */
function jpeg(bytes: Buffer): Buffer[] {
  const out = [cut(bytes, 0, 2)];
  let way = 1;
  let at = 2;
  for (;;) {
    if (bytes[at] !== 0xff) throw broken('no marker');
    const marker = bytes[at + 1];
    if (marker === undefined) throw broken('no marker');
    if (marker === 0xff) {
      at++;
      continue;
    }
    const segment = cut(bytes, at, at + 2 + bytes.readUInt16BE(at + 2));
    if (marker === 0xda) break;
    if (marker === 0xe1) way = orientationIn(segment.subarray(4)) ?? way;
    // What a decoder needs: JFIF, the colour profile, Adobe's word on colours.
    const kept = marker < 0xe0 || marker === 0xe0 || marker === 0xee || (marker === 0xe2 && segment.includes('ICC_PROFILE'));
    if (kept && marker !== 0xfe) out.push(segment);
    at += segment.length;
  }
  if (way !== 1) out.splice(1, 0, wayUp(way));
  out.push(cut(bytes, at, endOfScans(bytes, at)));
  return out;
}

function endOfScans(bytes: Buffer, from: number): number {
  for (let at = from; ; ) {
    at = bytes.indexOf(0xff, at);
    if (at < 0 || at + 1 >= bytes.length) throw broken('no end of image');
    const next = bytes[at + 1]!;
    if (next === 0xd9) return at + 2;
    // A table or another scan; its length could hold what looks like an end.
    if (next !== 0 && next !== 0xff && (next < 0xd0 || next > 0xd7)) at += 2 + bytes.readUInt16BE(at + 2);
    else at += next === 0xff ? 1 : 2;
  }
}

function orientationIn(app1: Buffer): number | undefined {
  if (app1.toString('latin1', 0, 6) !== 'Exif\0\0' || app1.length < 14) return undefined;
  const tiff = app1.subarray(6);
  const little = tiff.toString('latin1', 0, 2) === 'II';
  const u16 = (at: number) => (at + 2 > tiff.length ? 0 : little ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at));
  const first = little ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  for (let n = 0; n < Math.min(u16(first), 512); n++) {
    const entry = first + 2 + n * 12;
    if (u16(entry) === 0x0112) return Math.min(8, Math.max(1, u16(entry + 8)));
  }
  return undefined;
}

/** An Exif segment that says which way is up, and nothing else. */
const wayUp = (way: number): Buffer =>
  Buffer.from([
    ...[0xff, 0xe1, 0, 34, 0x45, 0x78, 0x69, 0x66, 0, 0, 0x4d, 0x4d, 0, 42, 0, 0, 0, 8],
    ...[0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, way, 0, 0, 0, 0, 0, 0],
  ]);

/** Chunks that a picture may be without. */
const pngTold = new Set(['eXIf', 'tEXt', 'zTXt', 'iTXt', 'tIME', 'dSIG', 'caBX']);
const pngKnown = /^(IHDR|PLTE|IDAT|IEND|tRNS|cHRM|gAMA|iCCP|sBIT|sRGB|cICP|bKGD|hIST|pHYs|sPLT|acTL|fcTL|fdAT)$/;

function png(bytes: Buffer): Buffer[] {
  const out = [cut(bytes, 0, 8)];
  for (let at = 8; ; ) {
    if (at + 8 > bytes.length) throw broken('no IEND');
    const type = bytes.toString('latin1', at + 4, at + 8);
    const chunk = cut(bytes, at, at + 12 + bytes.readUInt32BE(at));
    if (!pngTold.has(type) && pngKnown.test(type)) out.push(chunk);
    at += chunk.length;
    if (type === 'IEND') return out;
  }
}

const webpKnown = new Set(['VP8 ', 'VP8L', 'VP8X', 'ALPH', 'ANIM', 'ANMF', 'ICCP']);

function webp(bytes: Buffer): Buffer[] {
  const end = 8 + bytes.readUInt32LE(4);
  if (end > bytes.length) throw broken('it ends too early');
  const kept: Buffer[] = [];
  for (let at = 12; at + 8 <= end; ) {
    const type = bytes.toString('latin1', at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    const chunk = Buffer.from(cut(bytes, at, Math.min(end, at + 8 + size + (size & 1))));
    // In the list of what there is: no Exif, no XMP.
    if (type === 'VP8X') chunk[8] = chunk[8]! & ~0x0c;
    if (webpKnown.has(type)) kept.push(chunk);
    at += 8 + size + (size & 1);
  }
  const body = kept.reduce((sum, { length }) => sum + length, 0);
  const head = Buffer.from(bytes.subarray(0, 12));
  head.writeUInt32LE(body + 4, 4);
  return [head, ...kept];
}

/** Comments and applications' blocks go, but for the one that says how often it is shown. */
function gif(bytes: Buffer): Buffer[] {
  const tableOf = (flags: number) => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1));
  const blocksEnd = (from: number): number => {
    let at = from;
    for (let size = bytes[at]; size !== 0; size = bytes[at]) {
      if (size === undefined) throw broken('it ends too early');
      at += size + 1;
    }
    return at + 1;
  };
  if (bytes.length < 13) throw broken('it ends too early');
  let at = 13 + tableOf(bytes[10]!);
  const out = [cut(bytes, 0, at)];
  for (;;) {
    const begin = at;
    const what = bytes[at];
    if (what === 0x3b) return [...out, cut(bytes, at, at + 1)];
    if (what === 0x21) {
      const label = bytes[at + 1];
      at = blocksEnd(at + 2);
      const looping = label === 0xff && /^(NETSCAPE2\.0|ANIMEXTS1\.0)/.test(bytes.toString('latin1', begin + 3, begin + 14));
      if (label === 0xf9 || looping) out.push(cut(bytes, begin, at));
    } else if (what === 0x2c) {
      if (at + 10 > bytes.length) throw broken('it ends too early');
      at = blocksEnd(at + 10 + tableOf(bytes[at + 9]!) + 1);
      out.push(cut(bytes, begin, at));
    } else throw broken('no block');
  }
}
