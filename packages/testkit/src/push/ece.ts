import { createDecipheriv, createECDH, createHmac, type ECDH } from 'node:crypto';

/**
 * The device's side of RFC 8291 (and RFC 8188 below it), written from the RFCs and not with the sender's library: what it can read, any browser can.
 */
export interface Receiver {
  /** As in a Web Push subscription. */
  readonly keys: { readonly p256dh: string; readonly auth: string };
  /** @throws when it is not for this device, or was changed */
  decrypt(body: Uint8Array): string;
}

export function receiver(auth: Uint8Array, ecdh: ECDH = newKeys()): Receiver {
  const own = ecdh.getPublicKey();
  return {
    keys: { p256dh: own.toString('base64url'), auth: Buffer.from(auth).toString('base64url') },
    decrypt(given) {
      const body = Buffer.from(given);
      const salt = body.subarray(0, 16);
      const record = body.readUInt32BE(16);
      const length = body[20]!;
      const sender = body.subarray(21, 21 + length);
      const sealed = body.subarray(21 + length);
      if (sealed.length > record) throw new Error('more than one record');
      const shared = ecdh.computeSecret(sender);
      const info = Buffer.concat([Buffer.from('WebPush: info\0'), own, sender]);
      const ikm = expand(hmac(auth, shared), info, 32);
      const prk = hmac(salt, ikm);
      const key = expand(prk, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
      const nonce = expand(prk, Buffer.from('Content-Encoding: nonce\0'), 12);
      const cipher = createDecipheriv('aes-128-gcm', key, nonce);
      cipher.setAuthTag(sealed.subarray(sealed.length - 16));
      const plain = Buffer.concat([cipher.update(sealed.subarray(0, sealed.length - 16)), cipher.final()]);
      const end = plain.lastIndexOf(2);
      if (end < 0 || plain.subarray(end + 1).some((byte) => byte !== 0)) throw new Error('no delimiter of a last record');
      return plain.subarray(0, end).toString('utf8');
    },
  };
}

function newKeys(): ECDH {
  const ecdh = createECDH('prime256v1');
  ecdh.generateKeys();
  return ecdh;
}
const hmac = (key: Uint8Array, data: Uint8Array): Buffer => createHmac('sha256', key).update(data).digest();
const expand = (prk: Uint8Array, info: Buffer, length: number): Buffer =>
  hmac(prk, Buffer.concat([info, Buffer.from([1])])).subarray(0, length);
