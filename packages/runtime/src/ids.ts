import type { Clock } from './clock.js';
import type { Random } from './random.js';

const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz';
/** 36^9 milliseconds reach beyond the year 5000. */
const timeLength = 9;
const countLength = 3;
const countMax = 36 ** countLength;
const tailLength = 10;

export interface Ids {
  /** `length` characters of `[0-9a-z]`, about 5.17 bits each. */
  random(length?: number): string;
  /** 22 characters of `[0-9a-z]` that sort by the time they were made; those of one maker strictly rise, also when the clock steps back. */
  sortable(): string;
}

/** `length` characters of `[0-9a-z]`, every one equally likely. */
export function randomId(random: Random, length = 20): string {
  let out = '';
  while (out.length < length) {
    for (const byte of random.bytes(length - out.length + 4)) {
      // 252 is the largest multiple of 36 in a byte: what is above would favour the first letters.
      if (byte < 252 && out.length < length) out += alphabet[byte % 36];
    }
  }
  return out;
}

export function makeIds({ clock, random }: { clock: Clock; random: Random }): Ids {
  let last = 0;
  let count = 0;
  return {
    random: (length) => randomId(random, length),
    sortable() {
      const now = clock.now();
      if (now > last) {
        last = now;
        count = 0;
      } else if (++count === countMax) {
        last += 1;
        count = 0;
      }
      return base36(last, timeLength) + base36(count, countLength) + randomId(random, tailLength);
    },
  };
}

const base36 = (value: number, length: number): string => value.toString(36).padStart(length, '0');
