import { RequestError } from '@iris/protocol';
import type { EdgeContext } from './context.js';
import type { HttpExchange } from './http-exchange.js';
import { askAboutMedia } from './media-ask.js';
import { swallow, takeMedia } from './media-http-put.js';
import { linksPath, type MediaClaim, mediaClaim } from './media-link.js';

const statusOf: ReadonlyMap<string, string> = new Map([
  ['not_found', '404 Not Found'],
  ['media_too_large', '413 Content Too Large'],
  ['rate_limited', '429 Too Many Requests'],
  ['unsupported', '400 Bad Request'],
  ['auth', '403 Forbidden'],
]);
/** Whatever it is: to be saved, not to be shown, and never to be run. */
const safe: readonly (readonly [string, string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['content-security-policy', "sandbox; default-src 'none'"],
  ['cross-origin-resource-policy', 'cross-origin'],
  ['access-control-allow-origin', '*'],
  ['access-control-expose-headers', 'content-range, content-disposition'],
  ['referrer-policy', 'no-referrer'],
];
/** Types that are said as they are. All others are bytes. */
const told =
  /^(image\/(png|jpeg|gif|webp|avif|heic)|audio\/(mpeg|ogg|wav|mp4|flac)|video\/(mp4|quicktime|webm)|text\/(plain|markdown|csv)|application\/(json|pdf|zip|gzip))$/;

/** A link is followed. Answers each exactly once. */
export async function serveMedia(edge: EdgeContext, exchange: HttpExchange): Promise<void> {
  const { media_secret } = edge.config;
  const name = exchange.path.startsWith(linksPath) ? exchange.path.slice(linksPath.length) : '';
  const claim = media_secret === undefined ? undefined : claimIn(media_secret, name, edge.clock.now());
  const wanted = exchange.method === 'put' ? 'put' : 'get';
  if (claim === undefined) return exchange.reply('403 Forbidden');
  if (claim.op !== wanted) return exchange.reply('405 Method Not Allowed');
  edge.following.set(exchange, claim);
  try {
    if (claim.op === 'put') await takeMedia(edge, exchange, claim);
    else await give(edge, exchange, claim);
  } catch (error) {
    if (error instanceof RequestError) {
      if (claim.op === 'put') await swallow(exchange);
      const retry = error.retry_after_ms === undefined ? [] : [['retry-after', String(Math.ceil(error.retry_after_ms / 1_000))] as const];
      return exchange.reply(statusOf.get(error.code) ?? '503 Service Unavailable', retry);
    }
    edge.log.warn('edge.media_http_failed', { op: claim.op, media_id: claim.media_id, error });
    exchange.reply('503 Service Unavailable');
  } finally {
    edge.following.delete(exchange);
  }
}

function claimIn(secret: string, name: string, now: number): MediaClaim | undefined {
  try {
    return mediaClaim(secret, name, now);
  } catch {
    return undefined;
  }
}

async function give(edge: EdgeContext, exchange: HttpExchange, { tenant_id, media_id }: MediaClaim): Promise<void> {
  const { object_id, entry } = await askAboutMedia(edge, tenant_id, 'media.find', { media_id });
  const range = rangeOf(exchange.range, entry.size);
  const headers: (readonly [string, string])[] = [
    ...safe,
    ['accept-ranges', 'bytes'],
    ['cache-control', 'private, max-age=900, immutable'],
    ['etag', `"${String(entry.sha256)}"`],
    ['content-type', told.test(entry.mime) ? entry.mime : 'application/octet-stream'],
    ['content-disposition', `attachment; filename*=UTF-8''${encodeURIComponent(String(entry.filename ?? 'file')).replace(/['()*]/g, hex)}`],
  ];
  if (range === 'unsatisfiable')
    return exchange.reply('416 Range Not Satisfiable', [...headers, ['content-range', `bytes */${entry.size}`]]);
  const { from, to } = range ?? { from: 0, to: entry.size };
  const reader = await edge.media.read(tenant_id, object_id, { offset: from, length: to - from, lent: true });
  if (reader === undefined) throw new Error('its bytes are not there');
  const status = range === undefined ? '200 OK' : '206 Partial Content';
  const part = range === undefined ? [] : [['content-range', `bytes ${from}-${to - 1}/${entry.size}`] as const];
  await exchange.stream(status, [...headers, ...part], to - from, exchange.method === 'head' ? empty() : reader.bytes);
  edge.meters.media_bytes.add(to - from, { direction: 'down' });
}

async function* empty(): AsyncGenerator<Uint8Array> {}
const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** One range, from the front or from the end; what is not understood is no range, as HTTP has it. */
function rangeOf(header: string, size: number): { from: number; to: number } | 'unsatisfiable' | undefined {
  const found = /^bytes=(\d*)-(\d*)$/.exec(header.trim());
  if (found === null || (found[1] === '' && found[2] === '')) return undefined;
  const [first, last] = [found[1]!, found[2]!];
  if (first === '') return Number(last) === 0 ? 'unsatisfiable' : { from: Math.max(0, size - Number(last)), to: size };
  const from = Number(first);
  const to = last === '' ? size : Math.min(size, Number(last) + 1);
  return from >= size || to <= from ? 'unsatisfiable' : { from, to };
}
