import { expect, test } from '@jest/globals';
import { makeIds, randomId } from './ids.js';
import { systemRandom } from './random.js';
import { manualClock, seededRandom } from './testing.js';

test('random ids: their length, their letters, all different, evenly spread', () => {
  const ids = new Set<string>();
  const counts = new Map<string, number>();
  for (let i = 0; i < 5_000; i++) {
    const id = randomId(systemRandom, 20);
    if (!/^[0-9a-z]{20}$/.test(id)) throw new Error(id);
    ids.add(id);
    for (const letter of id) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  }
  expect(ids.size).toBe(5_000);
  expect(counts.size).toBe(36);
  // 100,000 letters: 2,778 each, give or take six standard deviations (52 each).
  for (const count of counts.values()) expect(Math.abs(count - 2_778)).toBeLessThan(320);
});

test('seeded: the same ids again', () => {
  expect(randomId(seededRandom(7))).toBe(randomId(seededRandom(7)));
  expect(randomId(seededRandom(7))).not.toBe(randomId(seededRandom(8)));
});

test('sortable ids rise: within a millisecond, past its counter, and when the clock steps back', async () => {
  const clock = manualClock();
  const stepped = { ...clock, now: () => now };
  let now = clock.now();
  const ids = makeIds({ clock: stepped, random: seededRandom(1) });
  const made: string[] = [];
  for (let i = 0; i < 50_000; i++) made.push(ids.sortable());
  now += 5;
  made.push(ids.sortable());
  now -= 10_000;
  made.push(ids.sortable());
  now += 20_000;
  made.push(ids.sortable());
  expect(made).toEqual([...made].sort());
  expect(new Set(made).size).toBe(made.length);
  expect(made.every((id) => /^[0-9a-z]{22}$/.test(id))).toBe(true);
});
