import { randomBytes } from 'node:crypto';

/** Numbers in [0, 1), for jitter and ids. Tests bring a seeded one. */
export type Random = () => number;

export const systemRandom: Random = () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48;

const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz';

/** `length` characters of `[0-9a-z]`. */
export function randomId(random: Random, length = 12): string {
  let id = '';
  while (id.length < length) id += alphabet[Math.floor(random() * 36)];
  return id;
}

/** Ids that read well in a log and never meet again: a counter says the order, the rest keeps those of other processes apart. */
export function idMaker(random: Random): (prefix: string) => string {
  let count = 0;
  return (prefix) => `${prefix}${++count}_${randomId(random)}`;
}
