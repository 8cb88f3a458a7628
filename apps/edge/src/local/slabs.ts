/** What one holds; frames of an upload are mostly as large. */
export const slab_bytes = 64 * 1024;
/** What is kept for the next ones when nothing is on its way. */
const spare_max = 64;

/** Memory that holds a piece of an upload, filled up to `used`. */
export interface Slab {
  readonly memory: Buffer;
  used: number;
}

/** Memory for bytes of uploads until the writer has taken them: the same again and again, since 25 MB of new buffers a second keep the collector busy. */
export interface Slabs {
  /** Copies `data` behind what `queue` holds. */
  fill(queue: Slab[], data: Uint8Array): void;
  /** Nobody reads them any more. */
  give(slabs: readonly Slab[]): void;
}

export function slabs(): Slabs {
  const spare: Buffer[] = [];
  return {
    fill(queue, data) {
      for (let at = 0; at < data.length; ) {
        let last = queue.at(-1);
        if (last === undefined || last.used === slab_bytes) {
          last = { memory: spare.pop() ?? Buffer.allocUnsafeSlow(slab_bytes), used: 0 };
          queue.push(last);
        }
        const piece = data.subarray(at, at + slab_bytes - last.used);
        last.memory.set(piece, last.used);
        last.used += piece.length;
        at += piece.length;
      }
    },
    give(done) {
      for (const { memory } of done) if (spare.length < spare_max) spare.push(memory);
    },
  };
}
