import { createECDH } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { receiver } from './ece.js';

const bytes = (text: string) => Buffer.from(text, 'base64url');

test('the example of RFC 8291, appendix A', () => {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(bytes('q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94'));
  const browser = receiver(bytes('BTBZMqHH6r4Tts7J_aSIgg'), ecdh);
  expect(browser.keys.p256dh).toBe('BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4');
  const body =
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN';
  expect(browser.decrypt(bytes(body))).toBe('When I grow up, I want to be a watermelon');
  const changed = bytes(body);
  changed[100]! ^= 1;
  expect(() => browser.decrypt(changed)).toThrow();
});
