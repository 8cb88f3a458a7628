import { constants, crc32 as crc32Of, deflateRawSync } from 'node:zlib';

export interface PngBomb {
  readonly width: number;
  readonly height: number;
  /** Of a pixel: grey in 1 or 8, colour with alpha in 32. */
  readonly bits: 1 | 8 | 32;
  /** Seven passes over the picture: a decoder holds all of it. */
  readonly interlaced?: boolean;
}

/** A whole, valid picture of nothing but zeros: a few bytes for each million pixels, made without holding them. */
export function pngBomb({ width, height, bits, interlaced = false }: PngBomb): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bits === 32 ? 8 : bits, bits === 32 ? 6 : 0, 0, 0, interlaced ? 1 : 0], 8);
  const rows = (w: number, h: number) => (w === 0 ? 0 : h * (1 + Math.ceil((w * bits) / 8)));
  const passes = [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
  ] as const;
  const along = (size: number, from: number, step: number) => Math.max(0, Math.ceil((size - from) / step));
  const size = interlaced
    ? passes.reduce((sum, [x, y, dx, dy]) => sum + rows(along(width, x, dx), along(height, y, dy)), 0)
    : rows(width, height);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    pngChunk('IDAT', zeros(size)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A zlib stream of so many zeros: one piece of it, again and again. */
function zeros(size: number): Buffer {
  const piece = 16 * 1024 * 1024;
  const flushed = deflateRawSync(Buffer.alloc(piece), { level: 9, finishFlush: constants.Z_FULL_FLUSH });
  const last = deflateRawSync(Buffer.alloc(size % piece), { level: 9 });
  const adler = Buffer.alloc(4);
  adler.writeUInt16BE(size % 65_521, 0);
  adler.writeUInt16BE(1, 2);
  return Buffer.concat([Buffer.from([0x78, 0xda]), ...Array.from({ length: Math.floor(size / piece) }, () => flushed), last, adler]);
}

export function pngChunk(type: string, data: Buffer): Buffer {
  const out = Buffer.alloc(data.length + 12);
  out.writeUInt32BE(data.length, 0);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32Of(out.subarray(4, data.length + 8)), data.length + 8);
  return out;
}
