export type Kind = 'image' | 'video' | 'audio' | 'file';
export interface Sniffed {
  readonly kind: Kind;
  readonly mime: string;
}

/** Bytes of the beginning that are looked at. */
export const head_bytes = 4_096;

const unknown: Sniffed = { kind: 'file', mime: 'application/octet-stream' };
const is = (kind: Kind, mime: string): Sniffed => ({ kind, mime });

/** Begins so, at this place, and is this. */
const magics: readonly (readonly [at: number, bytes: string, what: Sniffed])[] = [
  [0, '\x89PNG\r\n\x1a\n', is('image', 'image/png')],
  [0, '\xff\xd8\xff', is('image', 'image/jpeg')],
  [0, 'GIF87a', is('image', 'image/gif')],
  [0, 'GIF89a', is('image', 'image/gif')],
  [0, 'II*\0', is('file', 'image/tiff')],
  [0, 'MM\0*', is('file', 'image/tiff')],
  // Larger than four gigabytes may be, and raw pictures of those who count otherwise.
  [0, 'II+\0', is('file', 'image/tiff')],
  [0, 'MM\0+', is('file', 'image/tiff')],
  ...['IIU\0', 'IIRO', 'IIRS', 'MMOR'].map((magic) => [0, magic, is('file', 'image/x-raw')] as const),
  [0, '\0\0\0\x0cJXL \r\n\x87\n', is('file', 'image/jxl')],
  [0, '\0\0\0\x0cjP  \r\n\x87\n', is('file', 'image/jp2')],
  [0, 'OggS', is('audio', 'audio/ogg')],
  [0, 'ID3', is('audio', 'audio/mpeg')],
  [0, '\xff\xfb', is('audio', 'audio/mpeg')],
  [0, '\xff\xf3', is('audio', 'audio/mpeg')],
  [0, 'fLaC', is('audio', 'audio/flac')],
  [0, '\x1aE\xdf\xa3', is('video', 'video/webm')],
  [0, '%PDF-', is('file', 'application/pdf')],
  [0, 'PK\x03\x04', is('file', 'application/zip')],
  [0, '\x1f\x8b', is('file', 'application/gzip')],
];
/** What the name in `ftyp` says. */
const brands: ReadonlyMap<string, Sniffed> = new Map([
  ...['avif', 'avis'].map((brand) => [brand, is('image', 'image/avif')] as const),
  ...['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'mif1', 'msf1'].map((brand) => [brand, is('image', 'image/heic')] as const),
  ...['M4A ', 'M4B '].map((brand) => [brand, is('audio', 'audio/mp4')] as const),
  ['qt  ', is('video', 'video/quicktime')] as const,
  ['crx ', is('file', 'image/x-canon-cr3')] as const,
]);
/** Text that no reader runs. Of what a page or a picture may run (HTML, SVG, XML, scripts) nothing is left but that it is text. */
const harmless = new Set(['text/plain', 'text/markdown', 'text/csv', 'application/json']);

/** What a file is, by its bytes alone; `said` counts only among kinds of plain text. */
export function sniff(head: Uint8Array, said: string): Sniffed {
  const latin = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, 64)).toString('latin1');
  for (const [at, bytes, what] of magics) if (latin.startsWith(bytes, at)) return what;
  if (latin.startsWith('RIFF')) {
    const form = latin.slice(8, 12);
    return form === 'WEBP' ? is('image', 'image/webp') : form === 'WAVE' ? is('audio', 'audio/wav') : unknown;
  }
  if (latin.slice(4, 8) === 'ftyp') return brands.get(latin.slice(8, 12)) ?? is('video', 'video/mp4');
  if (!isText(head)) return unknown;
  const mime = said.toLowerCase().split(';')[0]!.trim();
  return is('file', harmless.has(mime) ? mime : 'text/plain');
}

/** UTF-8 without control characters. The end may be cut in the middle of a character. */
function isText(head: Uint8Array): boolean {
  if (head.byteLength === 0) return false;
  for (const byte of head) if (byte < 9 || (byte > 13 && byte < 32 && byte !== 27) || byte === 127) return false;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}
