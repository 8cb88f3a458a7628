import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a relay's upgrade carries at most: the agent's token in base64, with its expiry and a signature. */
export const relayBearerLength = 1_536;

/**
 * The agent's token in the bearer of a Hermes relay: unpadded base64url of `<id>:<expiry>:<hex HMAC-SHA256 of "<id>:<expiry>">`. The id and
 * the secret are both the agent's token, so that nothing but its hash need be kept here: the session finds out whether it is good.
 * @param now_s seconds since 1970
 * @returns undefined when it is none, was signed with something else, or has expired
 */
export function relayToken(bearer: string, now_s: number): string | undefined {
  if (bearer.length > relayBearerLength || !/^[\w-]+$/.test(bearer)) return undefined;
  const [, id, expiry, signature] = /^(.+):(\d{1,12}):([0-9a-f]{64})$/.exec(Buffer.from(bearer, 'base64url').toString('utf8')) ?? [];
  if (id === undefined || expiry === undefined || signature === undefined) return undefined;
  const wanted = createHmac('sha256', id).update(`${id}:${expiry}`).digest();
  if (!timingSafeEqual(wanted, Buffer.from(signature, 'hex'))) return undefined;
  return expiry !== '0' && Number(expiry) < now_s ? undefined : id;
}
