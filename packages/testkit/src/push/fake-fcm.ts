import { createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import type { Clock } from '@iris/runtime';
import { json, type ProviderAnswer, type ProviderRequest, type Troubles, textOf, troubles, withTrouble } from './provider.js';

export interface FcmDelivery {
  readonly token: string;
  readonly data: Readonly<Record<string, string>>;
  readonly android: { readonly priority?: string; readonly ttl?: string; readonly collapse_key?: string };
  readonly at: number;
}

/** FCM HTTP v1 with its token exchange, as documented: it checks every signature and shape, and keeps what it accepted. */
export interface FakeFcm extends Troubles {
  /** A service account's JSON. Its `token_uri` is `base` + `/token`. */
  account(base: string): string;
  readonly accepted: readonly FcmDelivery[];
  /** Requests to send, accepted or not. */
  readonly asked: readonly { readonly token: string; readonly at: number; readonly status: number }[];
  readonly exchanges: number;
  /** Of what it accepted, what it delivers to a device that it did not reach all the while, in order. */
  kept(token: string): readonly FcmDelivery[];
  /** Access tokens given so far are worth nothing. */
  revokeAccess(): void;
  /** The app was removed: UNREGISTERED. */
  unregister(token: string): void;
  handle(request: ProviderRequest): Promise<ProviderAnswer | undefined>;
}

const project = 'iris-test';
const email = 'pusher@iris-test.iam.gserviceaccount.com';
const scope = 'https://www.googleapis.com/auth/firebase.messaging';
/** Bytes of a data message. */
const most = 4_096;
/** Collapse keys of a device that it does not reach; which ones is its own choice. */
const keysKept = 4;
/** Messages without one. Beyond that it drops them all. */
const loneKept = 100;
let pair: { publicKey: string; privateKey: string } | undefined;
const keys = () => {
  pair ??= generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return pair;
};

/** An error as the API gives it, with the code of FCM in its details. */
export const fcmError = (status: number, errorCode: string, headers: Record<string, string> = {}): ProviderAnswer => {
  const names: Record<number, string> = {
    400: 'INVALID_ARGUMENT',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    500: 'INTERNAL',
    503: 'UNAVAILABLE',
  };
  const details = [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode }];
  return json(status, { error: { code: status, message: errorCode, status: names[status] ?? 'UNKNOWN', details } }, headers);
};

export function fakeFcm(clock: Clock): FakeFcm {
  const book = troubles();
  const accepted: FcmDelivery[] = [];
  const asked: { token: string; at: number; status: number }[] = [];
  const access = new Map<string, number>();
  const gone = new Set<string>();
  let exchanges = 0;
  let audience = '';

  const exchange = ({ body }: ProviderRequest): ProviderAnswer => {
    const form = new URLSearchParams(textOf(body));
    const fault = assertionFault(form.get('assertion') ?? '', audience, clock.now());
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return json(400, { error: 'unsupported_grant_type' });
    if (fault !== undefined) return json(400, { error: 'invalid_grant', error_description: fault });
    exchanges++;
    const access_token = `ya29.${randomBytes(16).toString('base64url')}`;
    access.set(access_token, clock.now() + 3_600_000);
    return json(200, { access_token, expires_in: 3_600, token_type: 'Bearer' });
  };

  const send = async (request: ProviderRequest): Promise<ProviderAnswer | undefined> => {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if ((access.get(bearer) ?? 0) <= clock.now()) return json(401, { error: { code: 401, status: 'UNAUTHENTICATED', message: 'no' } });
    let message: { token?: unknown; data?: Record<string, unknown>; android?: FcmDelivery['android'] };
    try {
      ({ message } = JSON.parse(textOf(request.body)) as { message: typeof message });
    } catch {
      return fcmError(400, 'INVALID_ARGUMENT');
    }
    const { token, data = {}, android = {} } = message;
    if (typeof token !== 'string') return fcmError(400, 'INVALID_ARGUMENT');
    const answer = await withTrouble(book, clock, token, () => {
      if (Object.values(data).some((value) => typeof value !== 'string')) return fcmError(400, 'INVALID_ARGUMENT');
      if (Buffer.byteLength(JSON.stringify(data)) > most) return fcmError(400, 'INVALID_ARGUMENT');
      if (android.ttl !== undefined && !/^\d+(\.\d+)?s$/.test(android.ttl)) return fcmError(400, 'INVALID_ARGUMENT');
      if (gone.has(token)) return fcmError(404, 'UNREGISTERED');
      accepted.push({ token, data: data as Record<string, string>, android, at: clock.now() });
      return json(200, { name: `projects/${project}/messages/${accepted.length}` });
    });
    asked.push({ token, at: clock.now(), status: answer?.status ?? 0 });
    return answer;
  };

  return {
    set: book.set,
    clear: book.clear,
    accepted,
    asked,
    get exchanges() {
      return exchanges;
    },
    kept(token) {
      const mine = accepted.filter((one) => one.token === token);
      const newest = new Map(
        mine.flatMap((one) => (one.android.collapse_key === undefined ? [] : [[one.android.collapse_key, one] as const])),
      );
      const lone = mine.filter(({ android }) => android.collapse_key === undefined);
      const keyed = [...newest.values()].slice(-keysKept);
      const delivered = new Set([...keyed, ...(lone.length > loneKept ? [] : lone)]);
      return mine.filter((one) => delivered.has(one));
    },
    account(base) {
      audience = `${base}/token`;
      const { privateKey } = keys();
      return JSON.stringify({
        type: 'service_account',
        project_id: project,
        private_key_id: 'key-1',
        private_key: privateKey,
        client_email: email,
        token_uri: audience,
      });
    },
    revokeAccess: () => access.clear(),
    unregister: (token) => void gone.add(token),
    async handle(request) {
      if (request.method === 'POST' && request.path === '/token') return exchange(request);
      if (request.method === 'POST' && request.path === `/v1/projects/${project}/messages:send`) return send(request);
      return json(404, { error: { code: 404, status: 'NOT_FOUND' } });
    },
  };
}

function assertionFault(assertion: string, audience: string, now: number): string | undefined {
  const [head = '', claims = '', signature = ''] = assertion.split('.');
  const key = createPublicKey(keys().publicKey);
  if (!verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))) return 'signature';
  const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as Record<string, unknown>;
  const { iss, aud, scope: asked, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
  if (header.alg !== 'RS256' || header.kid !== 'key-1') return 'header';
  if (iss !== email || aud !== audience || asked !== scope) return 'claims';
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > 3_600 || exp * 1_000 <= now || iat * 1_000 > now + 300_000)
    return 'time';
  return undefined;
}
