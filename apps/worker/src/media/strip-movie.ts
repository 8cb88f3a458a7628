import { type Box, boxAt, boxesIn } from './movie-boxes.js';
import { samplesOf, tableOf, trackOf } from './movie-track.js';
import { type Patch, type ReadRange, withWindow } from './read-range.js';

export interface Movie {
  readonly patches: readonly Patch[];
  /** Seconds. */
  readonly duration?: number;
  readonly width?: number;
  readonly height?: number;
}

const moov_bytes = 32 * 1024 * 1024;
const boxesMax = 20_000;
/** Of all that is overwritten besides the index. */
const removed_bytes = 128 * 1024 * 1024;

/**
 * What a film is made of, by what holds it. All else is where cameras write what they are, where they were and when (`udta`, `meta`, `uuid`,
 * and what the next one will think of).
 */
const known: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['', new Set(['ftyp', 'styp', 'moov', 'mdat', 'moof', 'mfra', 'sidx', 'ssix', 'pdin', 'wide'])],
  ['moov', new Set(['mvhd', 'trak', 'mvex', 'iods', 'clip', 'ctab', 'pssh', 'wide'])],
  ['trak', new Set(['tkhd', 'edts', 'mdia', 'tref', 'tapt', 'load', 'clip', 'matt', 'imap', 'txas', 'wide'])],
  ['mdia', new Set(['mdhd', 'hdlr', 'minf', 'elng', 'wide'])],
  ['minf', new Set(['vmhd', 'smhd', 'gmhd', 'nmhd', 'sthd', 'hmhd', 'hdlr', 'dinf', 'stbl', 'wide'])],
]);
/** Tracks that are shown or heard. Others tell of the camera: where it was at each moment (GoPro’s, DJI’s, Google’s), when, how it was held. */
const shown = new Set(['vide', 'soun', 'auxv', 'pict', 'text', 'sbtl', 'subt', 'clcp', 'hint']);

/**
 * What an MP4 or QuickTime file says of itself, and where it says too much: those boxes become empty space, so that nothing moves.
 * @throws RangeError when it is not built so
 */
export async function lookAtMovie(bytes: ReadRange, size: number): Promise<Movie> {
  const read = withWindow(bytes);
  const patches: Patch[] = [];
  let removed = 0;
  const blank = (offset: number, bytes: Buffer) => {
    removed += bytes.length;
    if (removed > removed_bytes) throw new RangeError('too much of it says where it was taken');
    patches.push({ offset, bytes });
  };
  let facts: Omit<Movie, 'patches'> = {};
  const found = new Set<string>();
  let at = 0;
  for (let n = 0; at < size; n++) {
    if (n > boxesMax) throw new RangeError('too many boxes');
    const head = await read(at, 16);
    let box: Box;
    try {
      box = boxAt(head, 0, size - at);
    } catch (error) {
      if (!found.has('moov') || !(found.has('mdat') || found.has('moof'))) throw error;
      // It is whole: what follows is the camera's own.
      blank(at, emptySpace(size - at));
      break;
    }
    const { type, header, length } = box;
    found.add(type);
    if (!known.get('')!.has(type)) {
      if (length > removed_bytes) throw new RangeError('too much of it says where it was taken');
      // Its length stays as it is written, which may be "to the end".
      blank(at + 4, Buffer.concat([Buffer.from('free'), head.subarray(8, header), Buffer.alloc(length - header)]));
    }
    if (type === 'moov') {
      if (length > moov_bytes) throw new RangeError('its index is too large');
      const moov = await read(at, length);
      if (moov.length < length) throw new RangeError('it ends too early');
      const index = blankIndex(moov, header, size);
      facts = index.facts;
      for (const { offset, length: gone } of index.samples) blank(offset, Buffer.alloc(gone));
      patches.push({ offset: at, bytes: moov });
    }
    at += length;
  }
  return { patches, ...facts };
}

function emptySpace(length: number): Buffer {
  const out = Buffer.alloc(length);
  if (length < 8 || length > removed_bytes) return out;
  out.writeUInt32BE(length, 0);
  out.write('free', 4, 'latin1');
  return out;
}

type Sample = { readonly offset: number; readonly length: number };

/** Changes `moov` where it stands. @returns where the bytes of the tracks are that went out of it */
function blankIndex(moov: Buffer, header: number, size: number): { facts: Omit<Movie, 'patches'>; samples: Sample[] } {
  let facts: Omit<Movie, 'patches'> = {};
  const samples: Sample[] = [];
  const gone = new Set<number>();
  const empty = ({ at, body, end }: Box) => {
    moov.write('free', at + 4, 'latin1');
    moov.fill(0, body, end);
  };
  const top = boxesIn(moov, header, moov.length);
  if (top.some(({ type }) => type === 'cmov')) throw new RangeError('its index is compressed');
  for (const box of top) {
    if (box.type !== 'trak') continue;
    const track = trackOf(moov, box);
    if (track.handler === 'vide') forgetEncoder(moov, box);
    if (track.handler === undefined || shown.has(track.handler)) continue;
    gone.add(track.track_id);
    samples.push(...samplesOf(moov, box, size));
    empty(box);
  }
  const walk = (from: number, to: number, holder: string): void => {
    for (const box of boxesIn(moov, from, to)) {
      const { type, body, end } = box;
      if (!known.get(holder)!.has(type)) empty(box);
      else if (known.has(type)) walk(body, end, type);
      else if (type === 'mvhd') facts = { ...facts, ...duration(moov, body) };
      else if (type === 'tkhd') facts = { ...facts, ...dimensions(moov, body, end) };
      else if (type === 'mdhd') forgetTimes(moov, body);
      else if (type === 'hdlr') moov.fill(0, Math.min(end, body + 24), end);
      else if (type === 'tref') for (const list of boxesIn(moov, body, end)) if (names(moov, list, gone)) empty(list);
    }
  };
  walk(header, moov.length, 'moov');
  return { facts, samples };
}

/** Made and changed: nobody needs to know when. @returns where it goes on behind them */
function forgetTimes(moov: Buffer, body: number): number {
  const behind = body + (moov[body] === 1 ? 20 : 12);
  if (behind > moov.length) throw new RangeError('it ends too early');
  moov.fill(0, body + 4, behind);
  return behind;
}

function duration(moov: Buffer, body: number): { duration?: number } {
  const at = forgetTimes(moov, body);
  const scale = moov.readUInt32BE(at);
  const units = moov[body] === 1 ? Number(moov.readBigUInt64BE(at + 4)) : moov.readUInt32BE(at + 4);
  return scale > 0 ? { duration: Math.round((units / scale) * 1_000) / 1_000 } : {};
}

function dimensions(moov: Buffer, body: number, end: number): { width?: number; height?: number } {
  forgetTimes(moov, body);
  const [width, height] = [moov.readUInt32BE(end - 8) >>> 16, moov.readUInt32BE(end - 4) >>> 16];
  return width > 0 && height > 0 ? { width, height } : {};
}

/** The name of what encoded its pictures, which is often the camera's. */
function forgetEncoder(moov: Buffer, trak: Box): void {
  for (const { type, body, end } of boxesIn(moov, ...tableOf(moov, trak)))
    if (type === 'stsd')
      for (const entry of boxesIn(moov, body + 8, end)) if (entry.length >= 86) moov.fill(0, entry.at + 50, entry.at + 82);
}

function names(moov: Buffer, { body, end }: Box, track_ids: ReadonlySet<number>): boolean {
  for (let at = body; at + 4 <= end; at += 4) if (track_ids.has(moov.readUInt32BE(at))) return true;
  return false;
}
