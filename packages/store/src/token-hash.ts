import { createHash } from 'node:crypto';

/** What the store keeps in place of a token: SHA-256 of the whole of it, hex. Tokens are long and random, so that no salt is needed. */
export const tokenHash = (token: string): string => createHash('sha256').update(token).digest('hex');
