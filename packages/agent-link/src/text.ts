// biome-ignore lint/suspicious/noControlCharactersInRegex: U+0000 is what is looked for
const broken = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** What the wire cannot carry (U+0000, lone surrogates) becomes U+FFFD: one code unit for one, so offsets stay as they are. */
export const cleanText = (text: string): string => text.replace(broken, '\ufffd');

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
/** Whether `text` ends in the first half of a character whose second half may be in the next chunk. */
export const endsHalf = (text: string): boolean => text.length > 0 && isHigh(text.charCodeAt(text.length - 1));

export const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8');

/**
 * How many code units of `text` fit into `max` bytes, never splitting a character; behind the last line break or
 * space of the second half when there is one, so that a long text is cut where a reader would.
 */
export function fitting(text: string, max: number): number {
  if (byteLength(text) <= max) return text.length;
  let units = 0;
  let bytes = 0;
  let soft = 0;
  while (units < text.length) {
    const point = text.codePointAt(units)!;
    const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (bytes + size > max) break;
    bytes += size;
    units += point > 0xffff ? 2 : 1;
    if (point === 10 || point === 32) soft = units;
  }
  return soft > units / 2 ? soft : units;
}

/** `text` in parts of at most `max` bytes each; at least one part. */
export function parts(text: string, max: number): string[] {
  const out: string[] = [];
  let rest = text;
  do {
    const units = Math.max(1, fitting(rest, max));
    out.push(rest.slice(0, units));
    rest = rest.slice(units);
  } while (rest.length > 0);
  return out;
}
