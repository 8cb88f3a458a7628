/** Gathers chunks into parts of exactly `size` bytes; what it is given is copied. */
export interface PartBuffer {
  /** The parts that are full now. */
  add(chunk: Uint8Array): Uint8Array[];
  /** What is left; the buffer is empty then. */
  rest(): Uint8Array;
  /** How many full parts there were. */
  readonly parts: number;
}

export function partBuffer(size: number): PartBuffer {
  /** Grows with what comes, so that a small file costs little. */
  let bytes = Buffer.alloc(0);
  let used = 0;
  let parts = 0;

  function makeRoom(wanted: number): void {
    if (bytes.byteLength >= wanted) return;
    const larger = Buffer.allocUnsafe(Math.min(size, Math.max(wanted, bytes.byteLength * 2)));
    bytes.copy(larger, 0, 0, used);
    bytes = larger;
  }
  function take(): Uint8Array {
    const taken = bytes.subarray(0, used);
    bytes = Buffer.alloc(0);
    used = 0;
    return taken;
  }
  return {
    get parts() {
      return parts;
    },
    add(chunk) {
      const full: Uint8Array[] = [];
      for (let at = 0; at < chunk.byteLength; ) {
        const count = Math.min(size - used, chunk.byteLength - at);
        makeRoom(used + count);
        bytes.set(chunk.subarray(at, at + count), used);
        used += count;
        at += count;
        if (used < size) continue;
        full.push(take());
        parts++;
      }
      return full;
    },
    rest: take,
  };
}
