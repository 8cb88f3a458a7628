import { type Box, boxesIn } from './movie-boxes.js';

export interface Track {
  readonly track_id: number;
  /** What it is to be given to; undefined when it does not say. */
  readonly handler: string | undefined;
}

const chunksMax = 200_000;

const child = (bytes: Buffer, box: Box | undefined, type: string): Box | undefined =>
  box && boxesIn(bytes, box.body, box.end).find((one) => one.type === type);

export function trackOf(moov: Buffer, trak: Box): Track {
  const tkhd = child(moov, trak, 'tkhd');
  const hdlr = child(moov, child(moov, trak, 'mdia'), 'hdlr');
  return {
    track_id: tkhd === undefined ? 0 : moov.readUInt32BE(tkhd.body + (moov[tkhd.body] === 1 ? 20 : 12)),
    handler: hdlr && moov.toString('latin1', hdlr.body + 8, hdlr.body + 12),
  };
}

/** From where to where what says of its samples what and where they are. */
export function tableOf(moov: Buffer, trak: Box): [from: number, to: number] {
  const stbl = child(moov, child(moov, child(moov, trak, 'mdia'), 'minf'), 'stbl');
  return stbl === undefined ? [0, 0] : [stbl.body, stbl.end];
}

/**
 * Where the bytes of a track are in a file of `size` bytes: one range for each chunk of samples.
 * @throws RangeError when its tables do not fit each other
 */
export function samplesOf(moov: Buffer, trak: Box, size: number): { offset: number; length: number }[] {
  const tables = new Map(boxesIn(moov, ...tableOf(moov, trak)).map((box) => [box.type, box]));
  const [stsc, stsz, stco, co64] = ['stsc', 'stsz', 'stco', 'co64'].map((type) => tables.get(type));
  const places = co64 ?? stco;
  // In fragments, or nowhere.
  if (stsc === undefined || stsz === undefined || places === undefined) return [];
  const chunks = moov.readUInt32BE(places.body + 4);
  const width = places === co64 ? 8 : 4;
  if (chunks > chunksMax || places.body + 8 + chunks * width > places.end) throw new RangeError('too many chunks');
  const runs = Math.min(moov.readUInt32BE(stsc.body + 4), Math.floor((stsc.end - stsc.body - 8) / 12));
  const same = moov.readUInt32BE(stsz.body + 4);
  const count = moov.readUInt32BE(stsz.body + 8);
  if (same === 0 && stsz.body + 12 + count * 4 > stsz.end) throw new RangeError('it ends too early');
  const out: { offset: number; length: number }[] = [];
  let sample = 0;
  for (let chunk = 1, run = 0; chunk <= chunks && sample < count; chunk++) {
    const first = (n: number) => moov.readUInt32BE(stsc.body + 8 + n * 12);
    while (run + 1 < runs && first(run + 1) <= chunk) run++;
    const samples = runs === 0 ? 0 : Math.min(count - sample, moov.readUInt32BE(stsc.body + 12 + run * 12));
    let length = same * samples;
    if (same === 0) for (let n = 0; n < samples; n++) length += moov.readUInt32BE(stsz.body + 12 + (sample + n) * 4);
    sample += samples;
    const place = places.body + 8 + (chunk - 1) * width;
    const offset = width === 8 ? Number(moov.readBigUInt64BE(place)) : moov.readUInt32BE(place);
    if (offset + length > size) throw new RangeError('it points behind its end');
    if (length > 0) out.push({ offset, length });
  }
  return out;
}
