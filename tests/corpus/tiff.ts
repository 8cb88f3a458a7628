export interface TiffForm {
  readonly little: boolean;
  /** With addresses of eight bytes. */
  readonly big?: boolean;
  /** Of those who count otherwise. */
  readonly magic?: number;
}
/** A text, a number, or directories that hang from it. */
export type TiffValue = string | number | readonly TiffDirectory[];
export type TiffDirectory = readonly (readonly [tag: number, value: TiffValue])[];

/** A TIFF of these directories, one behind the other; there are no pixels in it. */
export function tiff({ little, big = false, magic = big ? 43 : 42 }: TiffForm, directories: readonly TiffDirectory[]): Buffer {
  const [pointer, counter] = big ? [8, 8] : [4, 2];
  const pieces = new Map<number, Buffer>();
  let end = big ? 16 : 8;
  const number = (value: number, width: number): Buffer => {
    const out = Buffer.alloc(width);
    if (width === 8) little ? out.writeBigUInt64LE(BigInt(value)) : out.writeBigUInt64BE(BigInt(value));
    else little ? out.writeUIntLE(value, 0, width) : out.writeUIntBE(value, 0, width);
    return out;
  };
  const place = (bytes: Buffer): number => {
    const at = end;
    pieces.set(at, bytes);
    end += bytes.length + (bytes.length % 2);
    return at;
  };
  const field = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(pointer)]).subarray(0, pointer);
  const build = (directory: TiffDirectory, next: number): number => {
    const entries = directory.map(([tag, value]) => {
      const [type, count, bytes] =
        typeof value === 'number'
          ? [4, 1, number(value, 4)]
          : typeof value === 'string'
            ? [2, value.length, Buffer.from(value, 'latin1')]
            : [big ? 18 : 4, value.length, Buffer.concat(value.map((one) => number(build(one, 0), pointer)))];
      const own = bytes.length <= pointer ? field(bytes) : number(place(bytes), pointer);
      return Buffer.concat([number(tag, 2), number(type, 2), number(count, pointer), own]);
    });
    return place(Buffer.concat([number(entries.length, counter), ...entries, number(next, pointer)]));
  };
  let first = 0;
  for (const directory of [...directories].reverse()) first = build(directory, first);
  const head = [Buffer.from(little ? 'II' : 'MM'), number(magic, 2), ...(big ? [number(8, 2), number(0, 2)] : []), number(first, pointer)];
  const out = Buffer.alloc(end);
  Buffer.concat(head).copy(out);
  for (const [at, bytes] of pieces) bytes.copy(out, at);
  return out;
}
