import { createPrivateKey, type KeyObject, sign } from 'node:crypto';

/** Keys of the two kinds that providers want: RS256 for Google, ES256 for VAPID. */
export type SigningKey = { readonly alg: 'RS256' | 'ES256'; readonly key: KeyObject; readonly kid?: string };

export const rsaKey = (pem: string, kid?: string): SigningKey => ({
  alg: 'RS256',
  key: createPrivateKey(pem),
  ...(kid === undefined ? {} : { kid }),
});

/** @param point 65 bytes; @param d 32 bytes; base64url */
export function vapidKey(point: string, d: string): SigningKey {
  const bytes = Buffer.from(point, 'base64url');
  const part = (from: number) => bytes.subarray(from, from + 32).toString('base64url');
  return { alg: 'ES256', key: createPrivateKey({ key: { kty: 'EC', crv: 'P-256', x: part(1), y: part(33), d }, format: 'jwk' }) };
}

/** Signed at once, in this turn: nothing waits for a thread, so that tests hold the time. */
export function signedJwt({ alg, key, kid }: SigningKey, claims: Readonly<Record<string, unknown>>): string {
  const header = { alg, typ: 'JWT', ...(kid === undefined ? {} : { kid }) };
  const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const how = alg === 'RS256' ? key : ({ key, dsaEncoding: 'ieee-p1363' } as const);
  return `${text}.${sign('sha256', Buffer.from(text), how).toString('base64url')}`;
}
