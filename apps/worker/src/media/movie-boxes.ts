/** A box of an MP4 or QuickTime file, by where it is in the bytes that were read. */
export interface Box {
  readonly type: string;
  readonly at: number;
  /** Bytes of its header. */
  readonly header: number;
  readonly length: number;
  /** Where its content begins, and where the box ends. */
  readonly body: number;
  readonly end: number;
}

/** @throws RangeError when there is none, or it is larger than `room` */
export function boxAt(bytes: Buffer, at: number, room: number): Box {
  if (bytes.length < at + 8) throw new RangeError('it ends too early');
  const short = bytes.readUInt32BE(at);
  if (short === 1 && bytes.length < at + 16) throw new RangeError('it ends too early');
  const length = short === 0 ? room : short === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : short;
  const header = short === 1 ? 16 : 8;
  if (length < header || length > room) throw new RangeError('a box is larger than what holds it');
  return { type: bytes.toString('latin1', at + 4, at + 8), at, header, length, body: at + header, end: at + length };
}

/** One after another; QuickTime ends some lists with four zeros. */
export function boxesIn(bytes: Buffer, from: number, to: number): Box[] {
  const boxes: Box[] = [];
  for (let at = from; at + 8 <= to; at = boxes.at(-1)!.end) boxes.push(boxAt(bytes, at, to - at));
  return boxes;
}
