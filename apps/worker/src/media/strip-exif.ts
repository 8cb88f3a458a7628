import { tiffSizes } from './strip-tiff.js';

const exifPointers = new Set([0x8769, 0x8825, 0xa005]);
const subfiles = 0x014a;
const directoriesMax = 32;

/**
 * Exif and XMP of a container in which nothing may move (HEIF, AVIF), overwritten where they stand: every entry of every directory, with
 * the values that it points to.
 */
export function blankExif(bytes: Buffer): Buffer {
  const out = Buffer.from(bytes);
  for (const order of ['II*\0', 'MM\0*']) {
    for (let at = out.indexOf(order, 0, 'latin1'); at >= 0; at = out.indexOf(order, at + 4, 'latin1')) blankTiff(out, at);
  }
  for (const name of ['x:xmpmeta', 'rdf:RDF']) {
    for (let at = out.indexOf(`<${name}`, 0, 'latin1'); at >= 0; at = out.indexOf(`<${name}`, at + 1, 'latin1')) {
      const end = out.indexOf(`</${name}>`, at, 'latin1');
      out.fill(0x20, at, end < 0 ? out.length : end + name.length + 3);
    }
  }
  return out;
}

function blankTiff(out: Buffer, base: number): void {
  const little = out[base] === 0x49;
  const inside = (at: number, size: number) => at >= base && at + size <= out.length;
  const u16 = (at: number) => (little ? out.readUInt16LE(at) : out.readUInt16BE(at));
  const u32 = (at: number) => (little ? out.readUInt32LE(at) : out.readUInt32BE(at));
  if (!inside(base + 4, 4)) return;
  const waiting = [base + u32(base + 4)];
  const seen = new Set<number>();
  for (let at = waiting.pop(); at !== undefined && seen.size < directoriesMax; at = waiting.pop()) {
    if (seen.has(at) || !inside(at, 2)) continue;
    seen.add(at);
    const count = u16(at);
    if (count > 512 || !inside(at + 2, count * 12)) continue;
    for (let n = 0; n < count; n++) {
      const entry = at + 2 + n * 12;
      const [tag, type, values, value] = [u16(entry), u16(entry + 2), u32(entry + 4), u32(entry + 8)];
      const length = values * (tiffSizes[type] ?? 1);
      const few = Math.min(values, directoriesMax);
      if (tag === subfiles && length > 4 && inside(base + value, few * 4))
        for (let n = 0; n < few; n++) waiting.push(base + u32(base + value + n * 4));
      if (exifPointers.has(tag) || (tag === subfiles && length <= 4)) waiting.push(base + value);
      else if (length > 4 && inside(base + value, length)) out.fill(0, base + value, base + value + length);
      out.fill(0, entry, entry + 12);
    }
    if (inside(at + 2 + count * 12, 4)) {
      const next = u32(at + 2 + count * 12);
      if (next !== 0) waiting.push(base + next);
    }
    out.fill(0, at, at + 2);
  }
}
