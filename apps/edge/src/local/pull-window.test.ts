import { describe, expect, test } from '@jest/globals';
import { pullWindow } from './pull-window.js';

const chunk_bytes = 64 * 1024;
const step_ms = 0.25;

interface Line {
  /** In each direction. */
  readonly way_ms: number;
  /** What it takes in a second, as it changes: each for its share of the time. */
  readonly mbit: readonly number[];
  /** How much later than it should a pong comes at most. */
  readonly jitter_ms?: number;
  readonly seconds?: number;
}

/** A line that takes one byte after the other, and a pull at its pace, in virtual time. */
function play({ way_ms, mbit, jitter_ms = 0, seconds = 20 }: Line) {
  const window = pullWindow(chunk_bytes);
  const ends = seconds * 1_000;
  const paceAt = (at: number) => (mbit[Math.min(mbit.length - 1, Math.floor((at / ends) * mbit.length))]! * 1e6) / 8 / 1_000;
  /** What is in front of a frame that would be sent now: chunks that the line has not taken yet. */
  let waiting = 0;
  let taken = 0;
  let able = 0;
  const marks: { readonly number: number; readonly behind: number }[] = [];
  const pongs: { readonly number: number; readonly at: number }[] = [];
  let sent = 0;
  let worst = 0;
  let noise = 1;
  let timer = 0;
  for (let at = 0; at < ends; at += step_ms) {
    const now = Math.floor(at + 1_000.3);
    const takes = paceAt(at) * step_ms;
    able += takes;
    const took = Math.min(waiting, takes);
    waiting -= took;
    taken += took;
    while (marks.length > 0 && marks[0]!.behind <= taken + 1e-6) {
      noise = (noise * 16_807) % 2_147_483_647;
      const due = at + 2 * way_ms + (noise / 2_147_483_647) * jitter_ms;
      pongs.push({ number: marks.shift()!.number, at: Math.max(due, pongs.at(-1)?.at ?? 0) });
    }
    let woken = at >= timer;
    while (pongs.length > 0 && pongs[0]!.at <= at) {
      window.arrived(pongs.shift()!.number, now);
      woken = true;
    }
    if (at === 0) marks.push({ number: window.begin(now), behind: 0 });
    if (!woken) continue;
    timer = Number.POSITIVE_INFINITY;
    for (;;) {
      const wait = window.wait(now);
      if (wait > 0) timer = at + wait;
      if (wait > 0) break;
      // Behind the beginning, when nothing is known yet.
      if (at > ends / 4) worst = Math.max(worst, (waiting + chunk_bytes) / Math.max(chunk_bytes, 15 * paceAt(at)));
      waiting += chunk_bytes;
      sent += chunk_bytes;
      const number = window.sent(chunk_bytes, now);
      if (number !== undefined) marks.push({ number, behind: sent });
    }
  }
  return { worst, use: taken / able };
}

describe('PUL2: what of a pull is in front of another frame', () => {
  const lines = [0.25, 1, 8, 50, 200].flatMap((mbit) => [0.05, 10, 50].map((way_ms): Line => ({ mbit: [mbit], way_ms })));
  test.each(lines)('$mbit Mbit/s, $way_ms ms: no more than a chunk or what goes in 15 ms, and the line is used', (line) => {
    const { worst, use } = play(line);
    // Clocks of whole milliseconds measure a fast line no better.
    expect(worst).toBeLessThan(line.mbit[0]! > 10 ? 1.25 : 1.05);
    expect(use).toBeGreaterThan(0.95);
  });

  test('a gigabit nearby is used whole', () => {
    expect(play({ mbit: [1_000], way_ms: 1, seconds: 2 }).use).toBeGreaterThan(0.95);
  });

  test('pongs that come when they like, and a line that becomes slower and faster', () => {
    const shaky = play({ mbit: [8], way_ms: 30, jitter_ms: 40 });
    expect(shaky.worst).toBeLessThan(2.5);
    expect(shaky.use).toBeGreaterThan(0.75);
    const changing = play({ mbit: [8, 1, 8], way_ms: 20, seconds: 60 });
    // What is on its way when it becomes slower.
    expect(changing.worst).toBeLessThan(3);
    expect(changing.use).toBeGreaterThan(0.9);
  });

  test('whatever a line does, something comes that opens the window: a pong, or time', () => {
    let noise = 7;
    const random = () => {
      noise = (noise * 16_807) % 2_147_483_647;
      return noise / 2_147_483_647;
    };
    for (let round = 0; round < 200; round++) {
      const window = pullWindow(chunk_bytes);
      let now = 0;
      const out = [window.begin(now)];
      for (let step = 0; step < 500; step++) {
        const wait = window.wait(now);
        if (wait === 0) {
          const number = window.sent(chunk_bytes, now);
          if (number !== undefined) out.push(number);
        } else if (out.length > 0 && (wait === Number.POSITIVE_INFINITY || random() < 0.5)) {
          now += Math.floor(random() * 10 ** (1 + (round % 4)));
          window.arrived(out.splice(0, 1 + Math.floor(random() * out.length)).at(-1)!, now);
        } else {
          expect(wait).toBeLessThan(Number.POSITIVE_INFINITY);
          now += wait;
        }
      }
    }
  });

  test('a line that takes nothing any more gets nothing any more', () => {
    const window = pullWindow(chunk_bytes);
    window.arrived(window.begin(0), 10);
    let now = 10;
    for (let n = 0; n < 20; n++) {
      expect(window.wait(now)).toBe(0);
      const number = window.sent(chunk_bytes, now);
      now += 30;
      window.arrived(number!, now);
    }
    let more = 0;
    for (; more < 100 && Number.isFinite(window.wait(now)); more++) {
      now += window.wait(now);
      window.sent(chunk_bytes, now);
    }
    expect(more).toBeLessThan(4);
  });
});
