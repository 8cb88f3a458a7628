const replacement = '\ufffd';
/** Escapes that name U+0000 or a surrogate. */
const suspicious = /\\u(?:0000|[dD][89a-fA-F])/;
const broken = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\0/g;

/** Text with U+0000 and lone surrogates replaced by U+FFFD: Postgres cannot store the one, UTF-8 cannot carry the other. */
export const cleanText = (text: string): string => text.replace(broken, replacement);

/**
 * Whether JSON source may hold text that {@link cleanValue} changes. Raw U+0000 is no JSON, and bytes decoded as UTF-8 hold
 * no lone surrogates, so only escapes can bring them in; most frames have none and pay one native search.
 */
export const mayNeedCleaning = (source: string): boolean => (source.includes('\\u') && suspicious.test(source)) || !isWellFormed(source);

/** The same value when nothing in it needs cleaning, else a copy with every string and key cleaned. */
export function cleanValue(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null) return value;
  let changed = false;
  const keep = <T>(before: T, after: T): T => {
    if (after !== before) changed = true;
    return after;
  };
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => keep(item, cleanValue(item)));
    return changed ? items : value;
  }
  const entries = Object.entries(value).map(
    ([key, inner]) => [keep(key, cleanText(key)), keep<unknown>(inner, cleanValue(inner))] as const,
  );
  // `fromEntries` defines, never assigns: a `__proto__` key stays a key.
  return changed ? Object.fromEntries(entries) : value;
}

// In Node 20 and every current browser, but newer than the language level of the library typings.
const isWellFormed = (text: string): boolean => (text as string & { isWellFormed?(): boolean }).isWellFormed?.() ?? !text.match(broken);

/** Whether a parsed value nests objects and arrays deeper than `max`. */
export function isDeeperThan(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (max === 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && isDeeperThan(item, max - 1)) return true;
    return false;
  }
  // JSON has own keys only, so `for in` sees no others.
  for (const key in value) {
    const inner = (value as Record<string, unknown>)[key];
    if (typeof inner === 'object' && isDeeperThan(inner, max - 1)) return true;
  }
  return false;
}

/**
 * The same for JSON source, before parsing it: a megabyte of brackets would cost hundreds of milliseconds and tens of megabytes to
 * parse. Strings are skipped by native search. Source that is not JSON may give either answer.
 */
export function nestsDeeperThan(source: string, max: number): boolean {
  let depth = 0;
  let i = 0;
  while (i < source.length) {
    let quote = source.indexOf('"', i);
    if (quote < 0) quote = source.length;
    for (; i < quote; i++) {
      const c = source.charCodeAt(i);
      if (c === 0x7b || c === 0x5b) {
        if (++depth > max) return true;
      } else if (c === 0x7d || c === 0x5d) depth--;
    }
    i = endOfString(source, quote) + 1;
  }
  return false;
}

function endOfString(source: string, quote: number): number {
  let end = source.indexOf('"', quote + 1);
  while (end >= 0) {
    let slashes = 0;
    while (source.charCodeAt(end - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return end;
    end = source.indexOf('"', end + 1);
  }
  return source.length;
}

/** Bytes of the text as UTF-8; a lone surrogate counts as the three of U+FFFD. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0x80) continue;
    if (c < 0x800) bytes += 1;
    else {
      bytes += 2;
      // A pair is two units and four bytes.
      if (c >= 0xd800 && c < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) i++;
    }
  }
  return bytes;
}

const utf8 = new TextEncoder();
let scratch = new Uint8Array(64 * 1024);

/** Whether the text is more than `max` bytes of UTF-8; counts, natively, only when its length alone does not tell. */
export function exceedsBytes(text: string, max: number): boolean {
  if (text.length > max) return true;
  if (text.length * 3 <= max) return false;
  if (scratch.length < max) scratch = new Uint8Array(max);
  return utf8.encodeInto(text, scratch.subarray(0, max)).read < text.length;
}

/** Whether the text is more than `max` code points; counts only when its length alone does not tell. */
export const exceedsCodePoints = (text: string, max: number): boolean =>
  text.length > max && (text.length > max * 2 || firstCodePoints(text, max).length < text.length);

/** The first `max` code points. Never cuts a surrogate pair. */
export function firstCodePoints(text: string, max: number): string {
  if (text.length <= max) return text;
  let i = 0;
  for (let n = 0; n < max && i < text.length; n++) i += text.codePointAt(i)! > 0xffff ? 2 : 1;
  return text.slice(0, i);
}
