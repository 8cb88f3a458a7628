import { type Patch, type ReadRange, withWindow } from './read-range.js';

interface Element {
  readonly id: number;
  readonly at: number;
  readonly body: number;
  /** Undefined: nobody knew when it was begun. */
  readonly end: number | undefined;
}

const [segment, cluster, info, tracks, track, video] = [0x18538067, 0x1f43b675, 0x1549a966, 0x1654ae6b, 0xae, 0xe0];
const [timestampScale, duration, muxingApp, writingApp, pixelWidth, pixelHeight] = [0x2ad7b1, 0x4489, 0x4d80, 0x5741, 0xb0, 0xba];
const [seekHead, cues, chapters, nothing, trackName] = [0x114d9b74, 0x1c53bb6b, 0x1043a770, 0xec, 0x536e];
/** What a film is made of. All else (tags, attachments, and what nobody knows) is where it says where and with what it was made. */
const known = new Set([seekHead, info, tracks, cluster, cues, chapters, nothing]);
/** What stands in a cluster of unknown length, whose children follow as if they were its neighbours. */
const blocks = new Set([0xe7, 0xa3, 0xa0, 0xa7, 0xab, 0x5854, 0xaf]);
const elementsMax = 1_000_000;
const index_bytes = 8 * 1024 * 1024;
const removed_bytes = 128 * 1024 * 1024;

/**
 * What a WebM or Matroska file says of itself, and where it says too much: such elements become empty space, so that nothing moves.
 * @throws RangeError when it is not built so
 */
export async function lookAtMatroska(
  bytes: ReadRange,
  size: number,
): Promise<{ patches: readonly Patch[]; duration?: number; width?: number; height?: number }> {
  const read = withWindow(bytes);
  const patches: Patch[] = [];
  let facts: { duration?: number; width?: number; height?: number } = {};
  let removed = 0;
  let inside = false;
  for (let at = 0, n = 0; at < size; n++) {
    if (n > elementsMax) throw new RangeError('too many elements');
    const element = elementAt(await read(at, 12), 0, at, size);
    const { id, body, end } = element;
    if (id === segment && !inside) {
      inside = true;
      at = body;
      continue;
    }
    if (end === undefined) {
      if (id !== cluster) throw new RangeError('an element without an end');
      at = body;
      continue;
    }
    at = end;
    if (!inside || blocks.has(id)) continue;
    const length = end - element.at;
    if (!known.has(id)) {
      removed += length;
      if (removed > removed_bytes) throw new RangeError('too much of it says where it was taken');
      patches.push({ offset: element.at, bytes: emptySpace(length) });
    } else if (id === info || id === tracks) {
      if (length > index_bytes) throw new RangeError('its index is too large');
      const part = Buffer.from(await read(element.at, length));
      if (part.length < length) throw new RangeError('it ends too early');
      const head = body - element.at;
      facts = { ...facts, ...(id === info ? blankInfo(part, head) : blankTracks(part, head)) };
      patches.push({ offset: element.at, bytes: part });
    }
  }
  return { patches, ...facts };
}

/** @param base where `bytes` begin; what is told is counted from the beginning of the file */
function elementAt(bytes: Buffer, at: number, base: number, room: number): Element {
  const idLength = lengthOf(bytes[at], 4);
  const sizeLength = lengthOf(bytes[at + idLength], 8);
  const id = bytes.readUIntBE(at, idLength);
  let value = bytes[at + idLength]! & (0xff >> sizeLength);
  let open = value === 0xff >> sizeLength;
  for (let n = 1; n < sizeLength; n++) {
    const byte = bytes[at + idLength + n];
    if (byte === undefined) throw new RangeError('it ends too early');
    value = value * 256 + byte;
    open &&= byte === 0xff;
  }
  const begin = base + at;
  const body = begin + idLength + sizeLength;
  if (!open && body + value > room && id !== segment) throw new RangeError('an element is larger than what holds it');
  return { id, at: begin, body, end: open ? undefined : body + value };
}

function lengthOf(first: number | undefined, most: number): number {
  const length = first === undefined ? 0 : Math.clz32(first) - 23;
  if (length < 1 || length > most) throw new RangeError('no element');
  return length;
}

function* within(part: Buffer, from: number, to: number): Generator<Element & { readonly end: number }> {
  for (let at = from; at < to; ) {
    const element = elementAt(part, at, 0, to);
    if (element.end === undefined) throw new RangeError('an element without an end');
    yield { ...element, end: element.end };
    at = element.end;
  }
}

/** A void element of exactly so many bytes, at least 2. */
function emptySpace(length: number): Buffer {
  const out = Buffer.alloc(length);
  out[0] = nothing;
  const width = Math.min(8, length - 1);
  let rest = length - 1 - width;
  for (let n = width; n > 0; n--) {
    out[n] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  out[1] = out[1]! | (0x80 >> (width - 1));
  return out;
}

const uint = (part: Buffer, { body, end }: Element & { readonly end: number }): number => {
  let value = 0;
  for (let at = body; at < end; at++) value = value * 256 + part[at]!;
  return value;
};
const leave = (part: Buffer, { at, end }: Element & { readonly end: number }): void => void emptySpace(end - at).copy(part, at);

/** Keeps how long it is; who wrote it has to be named, by nothing. */
function blankInfo(part: Buffer, head: number): { duration?: number } {
  let scale = 1_000_000;
  let units = 0;
  for (const element of within(part, head, part.length)) {
    const { id, body, end } = element;
    if (id === timestampScale) scale = uint(part, element);
    else if (id === duration) units = end - body === 8 ? part.readDoubleBE(body) : end - body === 4 ? part.readFloatBE(body) : 0;
    else if (id === muxingApp || id === writingApp) part.fill(0, body, end);
    else if (id !== nothing) leave(part, element);
  }
  const seconds = Math.round((units * scale) / 1_000_000) / 1_000;
  return seconds > 0 && Number.isFinite(seconds) ? { duration: seconds } : {};
}

function blankTracks(part: Buffer, head: number): { width?: number; height?: number } {
  let [width, height] = [0, 0];
  for (const one of within(part, head, part.length)) {
    // A checksum of what is no longer there, for one.
    if (one.id !== track) leave(part, one);
    else
      for (const of of within(part, one.body, one.end)) {
        if (of.id === trackName) leave(part, of);
        if (of.id !== video) continue;
        for (const side of within(part, of.body, of.end)) {
          if (side.id === pixelWidth) width = uint(part, side);
          if (side.id === pixelHeight) height = uint(part, side);
        }
      }
  }
  return width > 0 && height > 0 ? { width, height } : {};
}
