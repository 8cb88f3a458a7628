import { createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import type { Clock } from '@iris/runtime';
import { type Receiver, receiver } from './ece.js';
import { type ProviderAnswer, type ProviderRequest, type Troubles, troubles, withTrouble } from './provider.js';

export interface WebPushDelivery {
  /** The subscription's name: the last part of its endpoint. */
  readonly name: string;
  readonly payload: Readonly<Record<string, string>>;
  readonly topic: string;
  readonly urgency: string;
  readonly ttl: number;
  readonly at: number;
}

/** What a push service has in its hands: bytes for the browser's eyes alone. */
export interface SealedDelivery {
  readonly body: Uint8Array;
  readonly topic: string;
}

/** A push service (RFC 8030) and the browsers behind it: it checks VAPID, they decrypt. */
export interface FakeWebPush extends Troubles {
  /** The server's key pair, as configured there. */
  readonly vapid: { readonly public_key: string; readonly private_key: string; readonly subject: string };
  /** What `PushManager.subscribe` gives. */
  subscribe(name: string, base: string): { endpoint: string; keys: { p256dh: string; auth: string } };
  readonly accepted: readonly WebPushDelivery[];
  readonly asked: readonly { readonly name: string; readonly at: number; readonly status: number }[];
  /** A real browser's subscription: what is pushed to it is checked and handed on as it is, since only the browser can read it. */
  attach(name: string, deliver: (delivery: SealedDelivery) => void): void;
  /** The subscription is gone: 410. */
  expire(name: string): void;
  handle(request: ProviderRequest): Promise<ProviderAnswer | undefined>;
}

/** @param audiences origins it may be called by */
export function fakeWebPush(clock: Clock, audiences: readonly string[]): FakeWebPush {
  const book = troubles();
  const accepted: WebPushDelivery[] = [];
  const asked: { name: string; at: number; status: number }[] = [];
  const browsers = new Map<string, Receiver>();
  const attached = new Map<string, (delivery: SealedDelivery) => void>();
  const gone = new Set<string>();
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = privateKey.export({ format: 'jwk' }) as { x: string; y: string; d: string };
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(jwk.x, 'base64url'), Buffer.from(jwk.y, 'base64url')]);
  const vapid = { public_key: point.toString('base64url'), private_key: jwk.d, subject: 'mailto:operator@example.org' };
  const status = (code: number, headers: Record<string, string> = {}): ProviderAnswer => ({ status: code, headers });

  const deliver = (name: string, { headers, body }: ProviderRequest): ProviderAnswer => {
    if (vapidFault(headers.authorization ?? '', vapid.public_key, audiences, clock.now()) !== undefined) return status(403);
    const { ttl, topic = '', urgency = 'normal', 'content-encoding': encoding } = headers;
    if (ttl === undefined || !/^\d+$/.test(ttl)) return status(400);
    if (encoding !== 'aes128gcm' || !/^[-_A-Za-z0-9]{1,32}$/.test(topic)) return status(400);
    if (body.length > 4_096) return status(413);
    const browser = browsers.get(name);
    const hand = attached.get(name);
    if (browser === undefined && hand === undefined) return status(404);
    if (gone.has(name)) return status(410);
    hand?.({ body, topic });
    if (browser === undefined) return status(201, { location: `/message/${name}-${asked.length}` });
    const payload = JSON.parse(browser.decrypt(body)) as Record<string, string>;
    accepted.push({ name, payload, topic, urgency, ttl: Number(ttl), at: clock.now() });
    return status(201, { location: `/message/${accepted.length}` });
  };
  return {
    set: book.set,
    clear: book.clear,
    vapid,
    accepted,
    asked,
    subscribe(name, base) {
      const browser = receiver(randomBytes(16));
      browsers.set(name, browser);
      return { endpoint: `${base}/push/${name}`, keys: browser.keys };
    },
    attach: (name, deliver) => void attached.set(name, deliver),
    expire: (name) => void gone.add(name),
    async handle(request) {
      const name = /^\/push\/([^/]+)$/.exec(request.path)?.[1];
      if (request.method !== 'POST' || name === undefined) return status(404);
      const answer = await withTrouble(book, clock, name, () => deliver(name, request));
      asked.push({ name, at: clock.now(), status: answer?.status ?? 0 });
      return answer;
    },
  };
}

function vapidFault(authorization: string, public_key: string, audiences: readonly string[], now: number): string | undefined {
  const [, token = '', key = ''] = /^vapid t=([^,]+), ?k=(.+)$/.exec(authorization) ?? [];
  if (key !== public_key) return 'another key';
  const [head = '', claims = '', signature = ''] = token.split('.');
  const point = Buffer.from(key, 'base64url');
  const part = (from: number) => point.subarray(from, from + 32).toString('base64url');
  const verifying = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: part(1), y: part(33) }, format: 'jwk' });
  const signed = Buffer.from(`${head}.${claims}`);
  if (!verify('sha256', signed, { key: verifying, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))) return 'signature';
  const { aud, exp, sub } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { aud?: string; exp?: number; sub?: string };
  if (aud === undefined || !audiences.includes(aud)) return 'audience';
  if (exp === undefined || exp * 1_000 <= now || exp * 1_000 > now + 24 * 3600 * 1000) return 'time';
  if (!/^(mailto:|https:)/.test(sub ?? '')) return 'subject';
  return undefined;
}
