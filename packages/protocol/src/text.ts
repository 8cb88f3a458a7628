/** Escapes that name U+0000 or a surrogate; raw ones are looked for beside it. */
const suspicious = /\\u(?:0000|[dD][89a-fA-F])|[\ud800-\udfff]/;
const replacement = '\ufffd';

/**
 * JSON source with U+0000 and lone surrogates in its strings replaced by U+FFFD, everything else exactly as it was.
 * Postgres cannot store the one, UTF-8 cannot carry the other.
 */
export function wellFormed(source: string): string {
  if (!suspicious.test(source)) return source;
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    return source;
  }
  return JSON.stringify(clean(value));
}

/** The same for one string, outside JSON. */
export const cleanText = (text: string): string =>
  text.replaceAll('\u0000', replacement).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, replacement);

function clean(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map(clean);
  if (typeof value === 'object' && value !== null) {
    // `fromEntries` defines, never assigns: a `__proto__` key stays a key.
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [cleanText(key), clean(inner)]));
  }
  return value;
}

/** Whether JSON source nests deeper than `max`. Runs before parsing, so a bomb of brackets costs one pass. */
export function exceedsDepth(source: string, max: number): boolean {
  if (source.length < max) return false;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < source.length; i++) {
    const c = source.charCodeAt(i);
    if (inString) {
      if (c === 92) i++;
      else if (c === 34) inString = false;
    } else if (c === 34) inString = true;
    else if (c === 123 || c === 91) {
      if (++depth > max) return true;
    } else if (c === 125 || c === 93) depth--;
  }
  return false;
}

const utf8 = new TextEncoder();
export const utf8Length = (text: string): number => (text.length * 3 < 1024 ? utf8.encode(text).length : byteLength(text));
function byteLength(text: string): number {
  let n = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0x80) n += 1;
    else if (c < 0x800) n += 2;
    else if (c >= 0xd800 && c < 0xdc00) {
      n += 4;
      i++;
    } else n += 3;
  }
  return n;
}

/** The first `max` code points. Never cuts a surrogate pair. */
export function firstCodePoints(text: string, max: number): string {
  if (text.length <= max) return text;
  let i = 0;
  for (let n = 0; n < max && i < text.length; n++) i += text.codePointAt(i)! > 0xffff ? 2 : 1;
  return text.slice(0, i);
}
