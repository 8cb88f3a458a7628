import { createHmac } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { relayToken } from './auth.js';

const token = 'iris-agent.tenant.0123456789abcdef';
const now = 1_800_000_000;
const bearer = (id: string, expiry: number, secret: string) => {
  const signed = `${id}:${expiry}`;
  return Buffer.from(`${signed}:${createHmac('sha256', secret).update(signed).digest('hex')}`).toString('base64url');
};

test('a token signed with itself, in time', () => {
  expect(relayToken(bearer(token, now + 300, token), now)).toBe(token);
  expect(relayToken(bearer(token, 0, token), now)).toBe(token);
  expect(relayToken(bearer(token, now - 1, token), now)).toBeUndefined();
});

test.each([
  ['signed with another secret', bearer(token, now + 300, 'other')],
  ['of another', bearer(token, now + 300, token).slice(0, -4)],
  ['no signature', Buffer.from(`${token}:0`).toString('base64url')],
  ['not base64url', `${bearer(token, 0, token)}+/=`],
  ['empty', ''],
  ['endless', 'A'.repeat(100_000)],
])('%s: none', (_, text) => {
  expect(relayToken(text, now)).toBeUndefined();
});
