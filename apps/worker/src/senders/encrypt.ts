import type { PushKeys } from '@iris/store';
import webPush from 'web-push';

/** The text for one device's eyes alone: RFC 8291, `aes128gcm` as a whole body. @throws when the keys are none */
export function encryptFor(keys: PushKeys, text: string): Uint8Array<ArrayBuffer> {
  const { cipherText } = webPush.encrypt(keys.p256dh, keys.auth, text, 'aes128gcm');
  return new Uint8Array(cipherText);
}
