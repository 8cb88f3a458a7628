import type { Clock } from '@iris/runtime';
import type { PushTargetRow } from '@iris/store';
import { encryptFor } from './encrypt.js';
import type { Http } from './http.js';
import { signedJwt, vapidKey } from './jwt.js';
import { payloadOf, withdrawalOf } from './payload.js';
import { retryAfter, type Sender, type Verdict } from './sender.js';

export interface Vapid {
  /** 65 bytes, base64url. */
  readonly public_key: string;
  /** 32 bytes, base64url. */
  readonly private_key: string;
  /** `mailto:` or `https:`. */
  readonly subject: string;
}
const token_s = 12 * 3600;
/** A signature serves for this long, per push service. */
const kept_ms = 6 * 3600 * 1000;

/**
 * Web Push: RFC 8030, payload encrypted to the browser by RFC 8291, sender named by VAPID (RFC 8292). Always encrypted; a content mode that says less
 * says less to the browser, too.
 */
export function webPushSender(options: {
  vapid: Vapid;
  /** Who may be named by a subscription: a client must not make us talk to whom it likes. */
  hosts: readonly string[];
  http: Http;
  clock: Clock;
  timeout_ms: number;
}): Sender {
  const { hosts, http, clock, timeout_ms } = options;
  const authorization = vapidTokens(options);

  const post = async (
    target: PushTargetRow,
    payload: Record<string, string>,
    more: { ttl_ms: number; urgency: string },
  ): Promise<Verdict> => {
    const origin = allowedOrigin(target.address, hosts);
    if (origin === undefined) return { is: 'dead', answer: 'its push service is not on the list' };
    if (target.keys === null) return { is: 'dead', answer: 'no keys' };
    let body: Uint8Array;
    try {
      body = encryptFor(target.keys, JSON.stringify(payload));
    } catch {
      return { is: 'dead', answer: 'keys are no keys' };
    }
    try {
      const headers = {
        authorization: authorization(origin),
        'content-encoding': 'aes128gcm',
        'content-type': 'application/octet-stream',
        ttl: String(Math.ceil(more.ttl_ms / 1_000)),
        urgency: more.urgency,
        topic: payload.tag!,
      };
      const { status, headers: said } = await http({ method: 'POST', url: target.address, headers, body }, { timeout_ms });
      if (status >= 200 && status < 300) return { is: 'accepted', answer: String(status) };
      if (status === 404 || status === 410) return { is: 'dead', answer: String(status) };
      if (status === 429 || status >= 500) return { is: 'retry', answer: String(status), ...retryAfter(said['retry-after'], clock.now()) };
      return { is: 'refused', answer: String(status) };
    } catch (error) {
      return { is: 'retry', answer: (error as Error).message };
    }
  };
  return {
    kind: 'webpush',
    server: (target) => allowedOrigin(target.address, hosts) ?? 'webpush',
    send: (target, notice, content) => post(target, payloadOf(notice, content), { ttl_ms: notice.ttl_ms, urgency: 'high' }),
    withdraw: (target, shown) => post(target, withdrawalOf(shown), { ttl_ms: 24 * 3600 * 1000, urgency: 'normal' }),
  };
}

/** The origin when the list has it: a host name, `*.` in front for those below it, or a whole origin. */
export function allowedOrigin(endpoint: string, hosts: readonly string[]): string | undefined {
  let url: URL;
  try {
    url = new URL(endpoint);
  } catch {
    return undefined;
  }
  const { protocol, hostname, port, origin } = url;
  if (hosts.includes(origin)) return origin;
  if (protocol !== 'https:' || port !== '') return undefined;
  return hosts.some((host) => hostname === host || (host.startsWith('*.') && hostname.endsWith(host.slice(1)))) ? origin : undefined;
}

function vapidTokens({ vapid, clock }: { vapid: Vapid; clock: Clock }): (origin: string) => string {
  const key = vapidKey(vapid.public_key, vapid.private_key);
  const kept = new Map<string, { value: string; until: number }>();
  return (origin) => {
    const known = kept.get(origin);
    if (known !== undefined && known.until > clock.now()) return known.value;
    const at = Math.floor(clock.now() / 1_000);
    const signed = signedJwt(key, { aud: origin, exp: at + token_s, sub: vapid.subject });
    const value = `vapid t=${signed}, k=${vapid.public_key}`;
    if (kept.size > 1_000) kept.clear();
    kept.set(origin, { value, until: clock.now() + kept_ms });
    return value;
  };
}
