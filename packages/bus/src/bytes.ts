/**
 * Writing and reading of the few shapes that hop records are made of. A varint is seven bits a byte, lowest first, the
 * high bit set on all but the last; up to 2^53 - 1. A string is its UTF-8 length as varint and its bytes.
 */
export interface Writer {
  buffer: Buffer;
  at: number;
}

export const writer = (estimate: number): Writer => ({ buffer: Buffer.allocUnsafe(estimate), at: 0 });

function room(w: Writer, bytes: number): void {
  if (w.at + bytes <= w.buffer.length) return;
  const larger = Buffer.allocUnsafe(Math.max(w.buffer.length * 2, w.at + bytes));
  w.buffer.copy(larger, 0, 0, w.at);
  w.buffer = larger;
}

export function putByte(w: Writer, value: number): void {
  room(w, 1);
  w.buffer[w.at++] = value;
}

/** @throws RangeError for what is not an integer from 0 to 2^53 - 1 */
export function putVarint(w: Writer, value: number): void {
  if (!(value >= 0 && Number.isSafeInteger(value))) throw new RangeError(`${value} is no varint`);
  room(w, 8);
  let rest = value;
  // Bit operations would cut at 32 bits.
  while (rest >= 0x80) {
    w.buffer[w.at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  w.buffer[w.at++] = rest;
}

export function putString(w: Writer, text: string): void {
  const { length } = text;
  room(w, 3 * length + 8);
  if (length < 64) {
    // Ids and frame types: short and ASCII, quicker by hand than through the encoder.
    const { buffer } = w;
    let at = w.at + 1;
    let i = 0;
    for (; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 0x80) break;
      buffer[at++] = code;
    }
    if (i === length) {
      buffer[w.at] = length;
      w.at = at;
      return;
    }
  }
  putVarint(w, Buffer.byteLength(text));
  w.at += w.buffer.write(text, w.at);
}

export function putBytes(w: Writer, bytes: Uint8Array): void {
  putVarint(w, bytes.length);
  putRaw(w, bytes);
}

export function putRaw(w: Writer, bytes: Uint8Array): void {
  room(w, bytes.length);
  w.buffer.set(bytes, w.at);
  w.at += bytes.length;
}

export interface Reader {
  readonly buffer: Buffer;
  at: number;
}

export const reader = (bytes: Uint8Array): Reader => ({ buffer: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), at: 0 });

export function takeByte(r: Reader): number {
  const byte = r.buffer[r.at++];
  if (byte === undefined) throw new RangeError('bytes end early');
  return byte;
}

export function takeVarint(r: Reader): number {
  let value = 0;
  let scale = 1;
  for (;;) {
    const byte = takeByte(r);
    if (byte < 0x80) return value + byte * scale;
    value += (byte & 0x7f) * scale;
    scale *= 0x80;
    if (scale > 2 ** 49) throw new RangeError('a varint too long');
  }
}

export function takeString(r: Reader): string {
  const length = takeVarint(r);
  const end = r.at + length;
  if (end > r.buffer.length) throw new RangeError('bytes end early');
  const text = r.buffer.toString('utf8', r.at, end);
  r.at = end;
  return text;
}

/** A view, not a copy. */
export function takeBytes(r: Reader): Uint8Array {
  const length = takeVarint(r);
  if (r.at + length > r.buffer.length) throw new RangeError('bytes end early');
  const bytes = new Uint8Array(r.buffer.buffer, r.buffer.byteOffset + r.at, length);
  r.at += length;
  return bytes;
}
