import { createHash, timingSafeEqual } from 'node:crypto';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Compares hashes, so neither time nor length tells anything about the right token. */
export const sameToken = (given: string, right: string): boolean => timingSafeEqual(digest(given), digest(right));
