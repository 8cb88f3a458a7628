import { createHmac, timingSafeEqual } from 'node:crypto';
import type { MediaLinkHolder } from '@iris/bus';
import { encode, type TenantId } from '@iris/protocol';
import type { EdgeContext } from './context.js';

/** What a link to a file allows its holder, for a while. */
export interface MediaClaim {
  readonly op: 'get' | 'put';
  readonly tenant_id: TenantId;
  readonly media_id: string;
  /** Milliseconds since 1970. */
  readonly expires_at: number;
  /** With `put`: whom it was given to, and ends with. */
  readonly by?: MediaLinkHolder;
}

export const linksPath = '/media/';
const text = new TextDecoder();

const sign = (secret: string, claim: string): Buffer => createHmac('sha256', secret).update(`iris media\n${claim}`).digest();

/** A path that any edge with the same secret honours until it expires. */
export function mediaPath(secret: string, { op, tenant_id, media_id, expires_at, by }: MediaClaim): string {
  const whose = by === undefined ? [] : [by];
  const claim = Buffer.from(JSON.stringify([op, tenant_id, media_id, expires_at, ...whose])).toString('base64url');
  return `${linksPath}${claim}.${sign(secret, claim).toString('base64url')}`;
}

/** What the last part of such a path allows; undefined when it is not ours or is over. */
export function mediaClaim(secret: string, name: string, now: number): MediaClaim | undefined {
  const [claim = '', signature = '', ...more] = name.split('.');
  const given = Buffer.from(signature, 'base64url');
  const right = sign(secret, claim);
  if (more.length > 0 || given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
  const [op, tenant_id, media_id, expires_at, by] = JSON.parse(Buffer.from(claim, 'base64url').toString()) as [
    MediaClaim['op'],
    TenantId,
    string,
    number,
    MediaLinkHolder?,
  ];
  return expires_at > now ? { op, tenant_id, media_id, expires_at, ...(by === undefined ? {} : { by }) } : undefined;
}

/** Where a file can be had for a while; undefined when links are off. */
export function linkTo(edge: EdgeContext, claim: MediaClaim): string | undefined {
  const { media_secret, public_url } = edge.config;
  if (media_secret === undefined) return undefined;
  return `${public_url?.replace(/\/$/, '') ?? ''}${mediaPath(media_secret, claim)}`;
}

const linksOff = encode({ type: 'error', payload: { code: 'unsupported', message: 'links to files are off here' } });
const marks = ['"media_id":"', '"media.grant"'].map((mark) => Buffer.from(mark));

type Entry = Record<string, unknown> & { media_id?: unknown };
interface Payload {
  readonly media?: Entry[];
  readonly messages?: { readonly media?: Entry[] }[];
  readonly message?: { readonly media?: Entry[] };
  readonly media_id?: unknown;
}

/**
 * The same frame with links in its media entries, for one that asked for them. Links are short-lived, and frames are kept: so they come in
 * when a frame goes out, and not before.
 */
export function withLinks(edge: EdgeContext, tenant_id: TenantId, body: Uint8Array, by?: MediaLinkHolder): Uint8Array {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!marks.some((mark) => bytes.includes(mark))) return body;
  if (edge.config.media_secret === undefined) return bytes.includes(marks[1]!) ? linksOff : body;
  const { v: _, ...frame } = JSON.parse(text.decode(body)) as { v: 1; type: string; payload: Payload };
  // Of one quarter of an hour all are alike, so that a cache may know them again.
  const period = edge.config.media_link_ms;
  const expires_at = (Math.floor(edge.clock.now() / period) + 2) * period;
  const linked = (entry: Entry): Entry =>
    typeof entry.media_id === 'string'
      ? { ...entry, url: linkTo(edge, { op: 'get', tenant_id, media_id: entry.media_id, expires_at }) }
      : entry;
  const within = <T extends { readonly media?: Entry[] }>(one: T): T =>
    one.media === undefined ? one : { ...one, media: one.media.map(linked) };
  const { payload } = frame;
  const next =
    frame.type === 'media.grant'
      ? { ...payload, url: linkTo(edge, { ...granted(payload), op: 'put', tenant_id, ...(by === undefined ? {} : { by }) }) }
      : frame.type === 'media.offer'
        ? linked(payload as Entry)
        : {
            ...within(payload),
            ...(payload.messages === undefined ? {} : { messages: payload.messages.map(within) }),
            ...(payload.message === undefined ? {} : { message: within(payload.message) }),
          };
  return encode({ ...frame, payload: next } as never);
}

const granted = ({ media_id, expires_at = 0 }: Payload & { readonly expires_at?: number }) => ({ media_id: String(media_id), expires_at });
