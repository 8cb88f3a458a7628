/** What one holds; frames of an upload are mostly as large. */
export const slab_bytes = 64 * 1024;
/** Less than this is copied into memory of just its size: a byte that waits is not to cost a slab. */
const small_bytes = 16 * 1024;
/** What is kept for the next ones when nothing is on its way. */
const spare_max = 64;

/** Memory that holds a piece of an upload, filled up to `used`. */
export interface Slab {
  readonly memory: Buffer;
  used: number;
}

/** An upload, whose bytes wait here. */
export interface Waiting {
  /** Bytes that the writer has not taken yet. */
  pending: number;
  /** Those that it has not been given. */
  queue: Slab[];
}

/** Memory for bytes of uploads until the writer has taken them: the same again and again, since 25 MB of new buffers a second keep the collector busy. */
export interface Slabs {
  /** Memory that those of all uploads together take. */
  readonly held_bytes: number;
  /** How many uploads have any. */
  readonly waiting: number;
  /** Copies `data` behind what the upload has in its queue. */
  fill(upload: Waiting, data: Uint8Array): void;
  /** The writer is done with them. @param sure that nobody reads them any more; else their memory is not used again */
  taken(upload: Waiting, slabs: readonly Slab[], sure: boolean): void;
  /** Nobody wants what is in the queue. */
  drop(upload: Waiting): void;
}

export function slabs(): Slabs {
  const spare: Buffer[] = [];
  let held_bytes = 0;
  let waiting = 0;
  const add = (upload: Waiting, bytes: number) => {
    const before = upload.pending;
    upload.pending += bytes;
    waiting += Number(upload.pending > 0) - Number(before > 0);
  };
  const memoryFor = (bytes: number): Buffer => {
    const memory = bytes < small_bytes ? Buffer.allocUnsafeSlow(bytes) : (spare.pop() ?? Buffer.allocUnsafeSlow(slab_bytes));
    held_bytes += memory.length;
    return memory;
  };
  const taken = (upload: Waiting, done: readonly Slab[], sure: boolean) => {
    for (const { memory, used } of done) {
      add(upload, -used);
      held_bytes -= memory.length;
      if (sure && memory.length === slab_bytes && spare.length < spare_max) spare.push(memory);
    }
  };
  return {
    get held_bytes() {
      return held_bytes;
    },
    get waiting() {
      return waiting;
    },
    fill(upload, data) {
      add(upload, data.length);
      for (let at = 0; at < data.length; ) {
        let last = upload.queue.at(-1);
        if (last === undefined || last.used === last.memory.length) {
          last = { memory: memoryFor(data.length - at), used: 0 };
          upload.queue.push(last);
        }
        const piece = data.subarray(at, at + last.memory.length - last.used);
        last.memory.set(piece, last.used);
        last.used += piece.length;
        at += piece.length;
      }
    },
    taken,
    drop: (upload) => taken(upload, upload.queue.splice(0), true),
  };
}
