import type { Patch, ReadRange } from './read-range.js';

/** Bytes of one value of each type of TIFF. */
export const tiffSizes: readonly number[] = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8];
const [subfiles, exif, gps, interop, raw, subfileType] = [0x014a, 0x8769, 0x8825, 0xa005, 0xc612, 0x00fe];
/** XMP, IPTC, Photoshop's block, names of files: where, when and by whom, in whatever form. */
const telling = new Set([
  0x02bc, 0x83bb, 0x8649, 0x010d, 0x010e, 0x0132, 0x013b, 0x013c, 0x8298, 0xc62f, 0xc68b, 0x9003, 0x9004, 0x9286, 0xa430, 0xa431,
]);
/** What a raw picture cannot be developed without; of others it goes. */
const device = new Set([0x010f, 0x0110, 0x0131, exif]);
/** Besides one for each two kilobytes: books are scanned into one file. */
const directoriesLeast = 64;
const entriesMax = 4_096;
/** Of all that is taken out. */
const removed_bytes = 64 * 1024 * 1024;

interface Entry {
  readonly tag: number;
  /** Where its value stands: behind a pointer, when it is longer than one. */
  readonly value: number;
  readonly length: number;
  readonly values: readonly number[];
}

/**
 * Where a TIFF file, or a raw picture that is built as one, says where, when and by whom it was taken: what such entries point to becomes
 * zeros, and the others of their directory close up. Nothing else moves. Of a raw picture the camera's own notes stay, since it is nothing without them.
 * @throws RangeError when it is not built so
 */
export async function lookAtTiff(read: ReadRange, size: number): Promise<{ readonly patches: readonly Patch[] }> {
  const head = await read(0, 16);
  const little = head[0] === 0x49;
  const u16 = (bytes: Buffer, at: number) => (little ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
  const u32 = (bytes: Buffer, at: number) => (little ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));
  const u64 = (bytes: Buffer, at: number) => Number(little ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at));
  const magic = u16(head, 2);
  const big = magic === 43;
  /** Bytes of what points, of what counts the entries, and of an entry. */
  const [pointer, counter, span] = big ? [8, 8, 20] : [4, 2, 12];
  const address = big ? u64 : u32;
  const within = (at: number, length: number) => {
    if (at + length > size) throw new RangeError('it points behind its end');
  };
  const patches: Patch[] = [];
  let removed = 0;
  const blank = (offset: number, length: number) => {
    removed += length;
    if (removed > removed_bytes) throw new RangeError('too much of it says where it was taken');
    patches.push({ offset, bytes: Buffer.alloc(length) });
  };
  /** Directories, whoever points to them, and lists of directories: each is a read, and one may point to itself. */
  const seen = new Set<number>();
  const visit = (at: number): boolean => {
    if (seen.has(at)) return false;
    if (seen.add(at).size > directoriesLeast + size / 2_048) throw new RangeError('too many directories');
    return true;
  };

  async function directory(at: number): Promise<{ entries: Entry[]; table: Buffer; next: number }> {
    within(at, counter);
    const count = big ? u64(await read(at, 8), 0) : u16(await read(at, 2), 0);
    if (count > entriesMax) throw new RangeError('too many entries');
    within(at + counter, count * span);
    const table = await read(at + counter, count * span + pointer);
    const entries: Entry[] = [];
    for (let n = 0; n < count; n++) {
      const from = n * span;
      const [tag, type, values] = [u16(table, from), u16(table, from + 2), address(table, from + 4)];
      const unit = tiffSizes[type] ?? 1;
      const length = values * unit;
      const own = from + span - pointer;
      const inline = length <= pointer;
      const value = inline ? at + counter + own : address(table, own);
      const numbers = async (): Promise<number[]> => {
        const many = tag === subfiles && !inline && visit(value);
        const few = many ? Math.min(values, 32) : inline && unit >= 4 ? Math.max(1, values) : 1;
        const [bytes, begin] = many ? [await read(value, few * unit), 0] : [table, own];
        const number = unit === 8 || (!inline && !many) ? address : u32;
        return Array.from({ length: few }, (_, i) => number(bytes, begin + i * unit));
      };
      entries.push({ tag, value, length, values: await numbers() });
    }
    return { entries, table, next: table.length < count * span + pointer ? 0 : address(table, count * span) };
  }
  const remove = ({ value, length }: Entry) => {
    if (length <= pointer) return;
    within(value, length);
    blank(value, length);
  };
  /** A directory without some of its entries: as long as before, with zeros behind it. */
  const closeUp = (at: number, table: Buffer, gone: ReadonlySet<number>) => {
    if (gone.size === 0) return;
    const count = Math.floor(table.length / span);
    const kept = Array.from({ length: count }, (_, n) => n).filter((n) => !gone.has(n));
    const out = Buffer.alloc(table.length + counter);
    if (little) out.writeUInt16LE(kept.length, 0);
    else out.writeUInt16BE(kept.length, counter - 2);
    for (const [n, from] of kept.entries()) table.copy(out, counter + n * span, from * span, from * span + span);
    table.copy(out, counter + kept.length * span, count * span);
    patches.push({ offset: at, bytes: out });
  };
  /** All of a directory, and those that it points to. */
  async function removeAll(at: number, depth: number): Promise<void> {
    if (!visit(at)) return;
    const { entries, table } = await directory(at);
    for (const entry of entries) {
      if ((entry.tag === gps || entry.tag === interop) && depth < 3) await removeAll(entry.values[0]!, depth + 1);
      remove(entry);
    }
    blank(at, counter + table.length);
  }

  const waiting = [big ? u64(head, 8) : u32(head, 4)];
  let first = true;
  // Canon's own mark; those of Olympus and Panasonic have another number in the place of TIFF's.
  let isRaw = head.toString('latin1', 8, 10) === 'CR' || (magic !== 42 && !big);
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    if (at === 0 || !visit(at)) continue;
    const { entries, table, next } = await directory(at);
    const reduced = first && entries.some(({ tag, values }) => tag === subfileType && values[0] === 1);
    first = false;
    isRaw ||= reduced || entries.some(({ tag }) => tag === raw);
    const gone = new Set<number>();
    for (const [n, entry] of entries.entries()) {
      const { tag, values } = entry;
      if (tag === subfiles || (tag === exif && isRaw)) waiting.push(...values);
      else if (tag === gps || telling.has(tag) || (device.has(tag) && !isRaw)) {
        if (tag === gps || tag === exif) await removeAll(values[0]!, 0);
        remove(entry);
        gone.add(n);
      }
    }
    closeUp(at, table, gone);
    waiting.push(next);
  }
  return { patches };
}
