import type { Clock } from '@iris/runtime';
import type { PushContent, PushTargetRow } from '@iris/store';
import { encryptFor } from './encrypt.js';
import type { Http, HttpAnswer } from './http.js';
import { rsaKey, signedJwt } from './jwt.js';
import { payloadOf, withdrawalOf } from './payload.js';
import { type Notice, retryAfter, type Sender, type Verdict } from './sender.js';

/** What of a service account's JSON is needed. */
export interface FcmAccount {
  readonly project_id: string;
  readonly client_email: string;
  readonly private_key: string;
  readonly private_key_id?: string;
  readonly token_uri: string;
}
const scope = 'https://www.googleapis.com/auth/firebase.messaging';
const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const assertion_s = 3_600;
/**
 * FCM keeps messages under so many collapse keys for a device that it does not reach, and of more than that it chooses. Lanes beyond go without one: of those
 * it keeps a hundred, each by itself, and the app puts a newer one of the tag in the place of an older.
 */
const collapseKeys = 4;
/** A token is not used in its last minute. */
const spare_ms = 60_000;

/** @throws Error naming what is missing; never its content */
export function fcmAccount(json: string): FcmAccount {
  let account: Partial<FcmAccount>;
  try {
    account = JSON.parse(json) as Partial<FcmAccount>;
  } catch {
    throw new Error('push_fcm_account: not JSON');
  }
  for (const name of ['project_id', 'client_email', 'private_key', 'token_uri'] as const)
    if (typeof account[name] !== 'string') throw new Error(`push_fcm_account: ${name} is missing`);
  return account as FcmAccount;
}

/**
 * FCM, HTTP v1. Data messages only: the app draws, so that it can leave out what it has shown, decrypt, and take back.
 * @param options.url where it is, such as `https://fcm.googleapis.com`
 */
export function fcmSender(options: { url: string; account: FcmAccount; http: Http; clock: Clock; timeout_ms: number }): Sender {
  const { url, account, http, clock, timeout_ms } = options;
  const token = accessToken(options);

  const post = async (
    target: PushTargetRow,
    data: Record<string, string>,
    more: { ttl_ms: number; tag: string; lanes_before: number },
  ): Promise<Verdict> => {
    const message = {
      token: target.address,
      data,
      android: {
        priority: 'HIGH',
        ttl: `${Math.ceil(more.ttl_ms / 1_000)}s`,
        ...(more.lanes_before < collapseKeys ? { collapse_key: more.tag } : {}),
      },
    };
    const body = JSON.stringify({ message });
    const ask = async () => {
      const headers = { authorization: `Bearer ${await token.get()}`, 'content-type': 'application/json' };
      return http({ method: 'POST', url: `${url}/v1/projects/${account.project_id}/messages:send`, headers, body }, { timeout_ms });
    };
    try {
      let answer = await ask();
      if (answer.status === 401 && errorOf(answer) !== 'THIRD_PARTY_AUTH_ERROR') {
        // Revoked before its time: once more with a new one.
        token.forget();
        answer = await ask();
      }
      return verdictOf(answer, clock.now());
    } catch (error) {
      return { is: 'retry', answer: (error as Error).message };
    }
  };
  return {
    kind: 'fcm',
    server: () => 'fcm',
    send(target, notice, content) {
      const data = dataOf(target, notice, content);
      return 'fault' in data ? Promise.resolve({ is: 'refused', answer: data.fault }) : post(target, data.fields, notice);
    },
    withdraw: (target, shown) => post(target, withdrawalOf(shown), { ...shown, ttl_ms: 24 * 3600 * 1000 }),
  };
}

/** Encrypted, the provider sees which push it is and nothing else. A device without keys gets ids in that case. */
function dataOf(
  { keys }: PushTargetRow,
  notice: Notice,
  content: PushContent,
): { readonly fields: Record<string, string> } | { readonly fault: string } {
  if (content !== 'encrypted') return { fields: payloadOf(notice, content) };
  if (keys === null) return { fields: payloadOf(notice, 'ids') };
  try {
    const sealed = encryptFor(keys, JSON.stringify(payloadOf(notice, 'encrypted')));
    return {
      fields: { type: 'push', cursor: String(notice.cursor), tag: notice.tag, aes128gcm: Buffer.from(sealed).toString('base64url') },
    };
  } catch {
    return { fault: 'keys are no keys' };
  }
}

/** `error.details[].errorCode` of FCM, else the status of the call. */
function errorOf({ text }: HttpAnswer): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { status?: string; details?: { errorCode?: string }[] } };
    return error?.details?.find(({ errorCode }) => typeof errorCode === 'string')?.errorCode ?? error?.status;
  } catch {
    return undefined;
  }
}

function verdictOf(answer: HttpAnswer, now: number): Verdict {
  const { status } = answer;
  if (status >= 200 && status < 300) return { is: 'accepted', answer: String(status) };
  const code = errorOf(answer);
  const said = code === undefined ? String(status) : `${status} ${code}`;
  // The project's own fault, such as a wrong sender, is of that token all the same: it will never work with this project.
  if (code === 'UNREGISTERED' || code === 'SENDER_ID_MISMATCH') return { is: 'dead', answer: said };
  if (status === 429 || status >= 500 || status === 401 || status === 403)
    return { is: 'retry', answer: said, ...retryAfter(answer.headers['retry-after'], now) };
  return { is: 'refused', answer: said };
}

/** One exchange at a time, whoever asks; kept until a minute before its end. */
function accessToken({ account, http, clock, timeout_ms }: { account: FcmAccount; http: Http; clock: Clock; timeout_ms: number }) {
  const key = rsaKey(account.private_key, account.private_key_id);
  let kept: { value: string; until: number } | undefined;
  let asking: Promise<string> | undefined;
  const exchange = async (): Promise<string> => {
    const at = Math.floor(clock.now() / 1_000);
    const claims = { iss: account.client_email, scope, aud: account.token_uri, iat: at, exp: at + assertion_s };
    const assertion = signedJwt(key, claims);
    const answer = await http(
      {
        method: 'POST',
        url: account.token_uri,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ grant_type: grant, assertion }).toString(),
      },
      { timeout_ms },
    );
    if (answer.status !== 200) throw new Error(`token exchange: ${answer.status}`);
    const { access_token, expires_in } = JSON.parse(answer.text) as { access_token: string; expires_in: number };
    kept = { value: access_token, until: clock.now() + expires_in * 1_000 - spare_ms };
    return access_token;
  };
  return {
    async get(): Promise<string> {
      if (kept !== undefined && kept.until > clock.now()) return kept.value;
      asking ??= exchange().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    forget() {
      kept = undefined;
    },
  };
}
