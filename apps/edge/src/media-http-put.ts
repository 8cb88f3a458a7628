import { type MediaWriter, NoRoom, WrongSha256 } from '@iris/media';
import { type MediaId, type ObjectId, RequestError, rateLimited, type TenantId } from '@iris/protocol';
import type { EdgeContext } from './context.js';
import type { HttpExchange } from './http-exchange.js';
import { askAboutMedia } from './media-ask.js';
import type { MediaClaim } from './media-link.js';

/** The link is all the right there is: whoever has it may use it from any page. */
const open: readonly (readonly [string, string])[] = [
  ['access-control-allow-origin', '*'],
  ['access-control-expose-headers', 'range'],
];

/** Bytes from `from` up to and without `to`; or the question how many there are. */
type Said = { readonly from: number; readonly to: number } | 'where' | 'wrong';

function saidIn(header: string, size: number): Said {
  if (header === '') return { from: 0, to: size };
  const found = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(header.trim());
  if (found === null || (found[3] !== '*' && Number(found[3]) !== size)) return 'wrong';
  if (found[1] === undefined) return 'where';
  const [from, to] = [Number(found[1]), Number(found[2]) + 1];
  return from < to && to <= size ? { from, to } : 'wrong';
}

/** A file comes by a link, whole or from where it broke off. Answers exactly once. */
export async function takeMedia(edge: EdgeContext, exchange: HttpExchange, { tenant_id, media_id, by }: MediaClaim): Promise<void> {
  const { size, sha256, complete, ...now } = await askAboutMedia(edge, tenant_id, 'media.accept', {
    media_id,
    ...(by === undefined ? {} : { by }),
  });
  const said = saidIn(exchange.content_range, size);
  if (said === 'wrong') return answer(exchange, '400 Bad Request');
  if (complete) return answer(exchange, said === 'where' ? '201 Created' : '404 Not Found');
  const kept = said === 'where' || said.from > 0 ? await edge.media.resume(tenant_id, now.object_id) : undefined;
  const offset = kept?.offset ?? 0;
  if (said === 'where' || said.from !== offset) {
    await kept?.writer.suspend();
    return toGoOn(exchange, offset);
  }
  const length = said.to - said.from;
  if (exchange.length !== undefined && exchange.length !== length) {
    await kept?.writer.suspend();
    return answer(exchange, '400 Bad Request');
  }
  const object_id = kept === undefined ? await anew(edge, tenant_id, media_id) : now.object_id;
  if (object_id === undefined) return answer(exchange, '404 Not Found');
  const writer = kept?.writer ?? (await edge.media.open(tenant_id, object_id, { keep: true }));
  try {
    const came = await append(edge, exchange, writer, length);
    if (came !== length) {
      await writer.abort();
      return answer(exchange, '400 Bad Request');
    }
    if (said.to < size) {
      await writer.suspend();
      const stored = await edge.media.resume(tenant_id, object_id);
      await stored?.writer.suspend();
      return toGoOn(exchange, stored?.offset ?? 0);
    }
    await commit(edge, tenant_id, media_id as MediaId, object_id, await writer.finish(sha256));
    exchange.reply('201 Created', open);
  } catch (error) {
    // What is stored of it can be gone on with; after a failure to store there is nothing.
    await writer.suspend();
    if (error instanceof WrongSha256) return answer(exchange, '400 Bad Request');
    if (error instanceof NoRoom) throw rateLimited('no room for it now', 30_000);
    throw error;
  }
}

/**
 * An object of its own for each beginning: of two that come by one link at once the second must not take the place of what the first has
 * committed, which other files of the same content name by now. The one that began last is the file's. Undefined when it is complete.
 */
export async function anew(edge: EdgeContext, tenant_id: TenantId, media_id: string): Promise<ObjectId | undefined> {
  const object_id = `ob_${edge.newConnectionId()}` as ObjectId;
  const { complete } = await askAboutMedia(edge, tenant_id, 'media.accept', { media_id, object_id });
  return complete === true ? undefined : object_id;
}

/** @returns how many bytes came, at most one more than `length` or the chunk in which that was noticed */
async function append(edge: EdgeContext, exchange: HttpExchange, writer: MediaWriter, length: number): Promise<number> {
  let came = 0;
  for await (const chunk of exchange.body()) {
    came += chunk.byteLength;
    if (came > length) break;
    edge.meters.media_bytes.add(chunk.byteLength, { direction: 'up' });
    await writer.append(chunk);
  }
  return came;
}

async function commit(
  edge: EdgeContext,
  tenant_id: TenantId,
  media_id: MediaId,
  object_id: ObjectId,
  stored: { size: number; sha256: string },
): Promise<void> {
  try {
    await askAboutMedia(edge, tenant_id, 'media.commit', { media_id, object_id, ...stored }, edge.config.upload_end_ms);
  } catch (error) {
    // Its row went meanwhile: nobody will ever find these bytes.
    if (error instanceof RequestError && error.code === 'not_found') await edge.media.remove(tenant_id, object_id);
    throw error;
  }
}

/** So many bytes are stored; the rest is to come. */
const toGoOn = (exchange: HttpExchange, offset: number): Promise<void> =>
  answer(exchange, '308 Resume Incomplete', offset === 0 ? [] : [['range', `bytes=0-${offset - 1}`]]);

/** What of a body is read for nothing: a peer that is still sending would hear that the connection broke, and not why. */
const swallowed_bytes = 16 * 1024 * 1024;

async function answer(exchange: HttpExchange, status: string, more: readonly (readonly [string, string])[] = []): Promise<void> {
  await swallow(exchange);
  exchange.reply(status, [...open, ...more]);
}

/** Read what is still coming, as far as that is bearable. */
export async function swallow(exchange: HttpExchange): Promise<void> {
  let came = 0;
  try {
    for await (const chunk of exchange.body()) {
      came += chunk.byteLength;
      if (came > swallowed_bytes) break;
    }
  } catch {
    // The peer is gone, and hears nothing.
  }
}
