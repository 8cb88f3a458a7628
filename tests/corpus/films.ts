/** A box of an MP4 or QuickTime file. */
export function box(type: string, ...content: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(content.map((one) => (typeof one === 'string' ? Buffer.from(one, 'latin1') : one)));
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8, 0);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, body]);
}
const u32 = (...numbers: number[]): Buffer => {
  const out = Buffer.alloc(numbers.length * 4);
  for (const [n, number] of numbers.entries()) out.writeUInt32BE(number, n * 4);
  return out;
};
const full = (type: string, ...content: (Buffer | string)[]) => box(type, u32(0), ...content);

interface TrackOf {
  readonly track_id: number;
  readonly handler: string;
  /** The name of its format. */
  readonly format: string;
  readonly samples: readonly Buffer[];
  /** Samples in each chunk. */
  readonly per_chunk: number;
  readonly tref?: Buffer;
}

/** A film as action cameras make it: tracks of samples, in chunks that take turns, and boxes in which the camera talks. */
export function film(tracks: readonly TrackOf[], more: { top?: Buffer[]; moov?: Buffer[]; trailer?: Buffer } = {}): Buffer {
  const ftyp = box('ftyp', 'mp41\0\0\0\0mp41');
  const places = tracks.map((): number[] => []);
  const pieces: Buffer[] = [];
  let at = ftyp.length + 8;
  for (let turn = 0, left = true; left; turn++) {
    left = false;
    for (const [n, { samples, per_chunk }] of tracks.entries()) {
      const chunk = samples.slice(turn * per_chunk, (turn + 1) * per_chunk);
      if (chunk.length === 0) continue;
      left = true;
      places[n]!.push(at);
      pieces.push(...chunk);
      at += Buffer.concat(chunk).length;
    }
  }
  const traks = tracks.map(({ track_id, handler, format, samples, per_chunk, tref }, n) => {
    const tkhd = full('tkhd', u32(3_900_000_001, 3_900_000_002, track_id), Buffer.alloc(60), u32(640 * 65_536, 480 * 65_536));
    const encoder = handler === 'vide' ? '\x11GoPro AVC encoder' : '';
    const entry = box(format, Buffer.alloc(42), encoder.padEnd(32, '\0'), Buffer.alloc(4));
    const stbl = box(
      'stbl',
      full('stsd', u32(1), entry),
      full('stsc', u32(1, 1, per_chunk, 1)),
      full('stsz', u32(0, samples.length, ...samples.map(({ length }) => length))),
      full('stco', u32(places[n]!.length, ...places[n]!)),
    );
    const hdlr = full('hdlr', u32(0), handler, Buffer.alloc(12), '\x0bGoPro track');
    const mdhd = full('mdhd', u32(3_900_000_003, 3_900_000_004, 1_000, 5_000), Buffer.alloc(4));
    return box('trak', tkhd, ...(tref === undefined ? [] : [tref]), box('mdia', mdhd, hdlr, box('minf', full('vmhd'), stbl)));
  });
  const mvhd = full('mvhd', u32(3_900_000_005, 3_900_000_006, 1_000, 5_000), Buffer.alloc(80));
  return Buffer.concat([
    ftyp,
    box('mdat', ...pieces),
    box('moov', mvhd, ...traks, ...(more.moov ?? [])),
    ...(more.top ?? []),
    more.trailer ?? Buffer.alloc(0),
  ]);
}

/** An element of a Matroska file; `length` instead of its own, in eight bytes. */
export function element(id: number, content: Buffer | string = '', length?: 'unknown'): Buffer {
  const body = typeof content === 'string' ? Buffer.from(content, 'latin1') : content;
  const name = Buffer.from(id.toString(16).padStart(id.toString(16).length + (id.toString(16).length % 2), '0'), 'hex');
  const size = Buffer.alloc(8, 0xff);
  size.writeBigUInt64BE(length === undefined ? BigInt(body.length) + 2n ** 56n : 2n ** 57n - 1n);
  return Buffer.concat([name, size, body]);
}
