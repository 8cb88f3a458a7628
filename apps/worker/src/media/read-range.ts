/** Reads `length` bytes from `offset`, or as many as there are. */
export type ReadRange = (offset: number, length: number) => Promise<Buffer>;

/** Bytes that take the place of those at `offset`; they are as long. */
export interface Patch {
  readonly offset: number;
  readonly bytes: Buffer;
}

const window_bytes = 64 * 1024;

/** The same, for one that asks for a little here and a little there: what stands beside it has been read already. */
export function withWindow(read: ReadRange): ReadRange {
  let window: Buffer = Buffer.alloc(0);
  let from = 0;
  return async (offset, length) => {
    if (length > window_bytes) return read(offset, length);
    if (offset < from || offset + length > from + window.length) {
      window = await read(offset, window_bytes);
      from = offset;
    }
    return window.subarray(offset - from, offset - from + length);
  };
}
