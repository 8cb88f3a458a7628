import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { Type } from 'typebox';
import type { Random } from './random.js';

/** Secrets at rest: AES-256-GCM under keys that are made of the configuration's secrets. */
export interface Seal {
  /**
   * @param about what it belongs to, such as the id of its row: it opens nowhere else
   * @returns printable text
   */
  seal(text: string, about: string): string;
  /** Undefined when none of the secrets opens it, or it was sealed for something else. */
  open(sealed: string, about: string): string | undefined;
}

const version = 's1';
const nonce_bytes = 12;
const tag_bytes = 16;

/** @param secrets the first seals, each opens, so that one can be replaced: put the new one in front. At least one. */
export function sealing(secrets: readonly string[], random: Pick<Random, 'bytes'>): Seal {
  const keys = secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', 'iris sealing', 32)));
  const [first] = keys;
  if (first === undefined) throw new TypeError('sealing needs a secret');
  return {
    seal(text, about) {
      const nonce = Buffer.from(random.bytes(nonce_bytes));
      const cipher = createCipheriv('aes-256-gcm', first, nonce).setAAD(Buffer.from(about));
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return `${version}.${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')}`;
    },
    open(sealed, about) {
      const [name, encoded = ''] = sealed.split('.', 2);
      const bytes = Buffer.from(encoded, 'base64url');
      if (name !== version || bytes.length < nonce_bytes + tag_bytes) return undefined;
      for (const key of keys) {
        const nonce = bytes.subarray(0, nonce_bytes);
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tag_bytes })
          .setAAD(Buffer.from(about))
          .setAuthTag(bytes.subarray(nonce_bytes, nonce_bytes + tag_bytes));
        try {
          return Buffer.concat([decipher.update(bytes.subarray(nonce_bytes + tag_bytes)), decipher.final()]).toString('utf8');
        } catch {
          // Another of the secrets, or none.
        }
      }
      return undefined;
    },
  };
}

export const SealingSecret = Type.Array(Type.String({ minLength: 32 }), {
  default: [],
  secret: true,
  description:
    'secrets under which keys of endpoints are kept, at least 32 characters each; the first seals, each opens; none: none are kept',
});
