/** Reads `length` bytes from `offset`, or as many as there are. */
export type ReadRange = (offset: number, length: number) => Promise<Buffer>;

/** Bytes that take the place of those at `offset`; they are as long. */
export interface Patch {
  readonly offset: number;
  readonly bytes: Buffer;
}

export interface Movie {
  readonly patches: readonly Patch[];
  /** Seconds. */
  readonly duration?: number;
  readonly width?: number;
  readonly height?: number;
}

const moov_bytes = 32 * 1024 * 1024;
const boxesMax = 1_000;
const holders = new Set(['moov', 'trak', 'mdia']);
/** Where cameras write what they are, where they were and when. */
const telling = new Set(['udta', 'meta', 'uuid']);

/**
 * What an MP4 or QuickTime file says of itself, and where it says too much: those boxes become empty space, so that nothing moves.
 * @throws RangeError when it is not built so
 */
export async function lookAtMovie(read: ReadRange, size: number): Promise<Movie> {
  const patches: { offset: number; bytes: Buffer }[] = [];
  let facts: { duration?: number; width?: number; height?: number } = {};
  let at = 0;
  for (let n = 0; at < size; n++) {
    if (n > boxesMax) throw new RangeError('too many boxes');
    const { type, header, length } = boxAt(await read(at, 16), 0, size - at);
    if (telling.has(type)) patches.push({ offset: at + 4, bytes: Buffer.from('free') });
    if (type === 'moov') {
      if (length > moov_bytes) throw new RangeError('its index is too large');
      const moov = await read(at, length);
      if (moov.length < length) throw new RangeError('it ends too early');
      facts = blankMoov(moov, header);
      patches.push({ offset: at, bytes: moov });
    }
    at += length;
  }
  return { patches, ...facts };
}

function boxAt(bytes: Buffer, at: number, room: number): { type: string; header: number; length: number } {
  if (bytes.length < at + 8) throw new RangeError('it ends too early');
  const short = bytes.readUInt32BE(at);
  if (short === 1 && bytes.length < at + 16) throw new RangeError('it ends too early');
  const length = short === 0 ? room : short === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : short;
  const header = short === 1 ? 16 : 8;
  if (length < header || length > room) throw new RangeError('a box is larger than what holds it');
  return { type: bytes.toString('latin1', at + 4, at + 8), header, length };
}

function blankMoov(moov: Buffer, header: number): { duration?: number; width?: number; height?: number } {
  let facts: { duration?: number; width?: number; height?: number } = {};
  const walk = (from: number, to: number, depth: number): void => {
    for (let at = from; at + 8 <= to; ) {
      const { type, header: own, length } = boxAt(moov, at, to - at);
      const body = at + own;
      if (telling.has(type)) {
        moov.write('free', at + 4, 'latin1');
        moov.fill(0, body, at + length);
      } else if (type === 'mvhd') duration(body);
      else if (type === 'tkhd') dimensions(body, at + length);
      else if (holders.has(type) && depth < 4) walk(body, at + length, depth + 1);
      at += length;
    }
  };
  const duration = (body: number) => {
    const long = moov[body] === 1;
    // Made and changed: nobody needs to know when.
    moov.fill(0, body + 4, body + (long ? 20 : 12));
    const scale = moov.readUInt32BE(body + (long ? 20 : 12));
    const units = long ? Number(moov.readBigUInt64BE(body + 24)) : moov.readUInt32BE(body + 16);
    if (scale > 0) facts = { ...facts, duration: Math.round((units / scale) * 1_000) / 1_000 };
  };
  const dimensions = (body: number, end: number) => {
    const long = moov[body] === 1;
    moov.fill(0, body + 4, body + (long ? 20 : 12));
    const [width, height] = [moov.readUInt32BE(end - 8) >>> 16, moov.readUInt32BE(end - 4) >>> 16];
    if (width > 0 && height > 0) facts = { ...facts, width, height };
  };
  walk(header, moov.length, 0);
  return facts;
}
