import { expect, test } from '@jest/globals';
import type { Answer } from './context.js';
import { createLine, type Outcome, type Request, type Update } from './line.js';

/** A line whose requests the test begins to answer itself. */
function line(base = 1) {
  const begun: number[] = [];
  const said: string[] = [];
  const updates: number[] = [];
  let skips = 0;
  const waiting = new Map<number, { enter(): void; finish(outcome: Outcome): void }>();
  const one = createLine({
    base,
    pipelined: ({ type }) => type === 'message.send',
    run: ({ n }, enter) =>
      new Promise((finish) => {
        begun.push(n);
        waiting.set(n, { enter, finish });
      }),
    answer: (n, _, again) => said.push(again ? `${n} again` : `${n}`),
    update: ({ after_n }) => updates.push(after_n),
    skipped: () => skips++,
  });
  const done: Answer = { kind: 'done' };
  return {
    line: one,
    begun,
    said,
    updates,
    get skips() {
      return skips;
    },
    take: (n: number, lowest = base, type = 'message.send') => one.take({ n, base: lowest, type } as Request),
    update: (after_n: number) => one.update({ after_n } as Update),
    enter: (n: number) => waiting.get(n)?.enter(),
    async finish(n: number, outcome: Outcome = done) {
      waiting.get(n)?.finish(outcome);
      for (let i = 0; i < 5; i++) await Promise.resolve();
    },
  };
}

test('ORD2: requests that come early wait for those before them', async () => {
  const { take, begun, finish, said } = line();
  take(3);
  take(2);
  expect(begun).toEqual([]);
  take(1);
  expect(begun).toEqual([1]);
  await finish(1);
  await finish(2);
  await finish(3);
  expect(begun).toEqual([1, 2, 3]);
  expect(said).toEqual(['1', '2', '3']);
});

test('ORD2: an instance that takes over begins at the lowest request that has no answer', async () => {
  const { take, begun } = line(7);
  take(8, 7);
  take(7, 7);
  expect(begun).toEqual([7]);
});

test('ORD2: the next may begin once this one has its place, where both allow it', async () => {
  const { take, begun, enter, finish } = line();
  take(1);
  take(2);
  take(3, 1, 'history');
  take(4);
  expect(begun).toEqual([1]);
  enter(1);
  expect(begun).toEqual([1, 2]);
  enter(2);
  // A history waits for everything before it, and everything after waits for the history.
  expect(begun).toEqual([1, 2]);
  await finish(2);
  expect(begun).toEqual([1, 2]);
  await finish(1);
  expect(begun).toEqual([1, 2, 3]);
  await finish(3);
  expect(begun).toEqual([1, 2, 3, 4]);
});

test('ENV21: a request that comes again is handled once: answered from memory, or not at all while it is under way', async () => {
  const { take, begun, finish, said } = line();
  take(1);
  take(1);
  expect(begun).toEqual([1]);
  await finish(1);
  expect(said).toEqual(['1']);
  take(1);
  expect(begun).toEqual([1]);
  expect(said).toEqual(['1', '1 again']);
});

test('ENV21: what is below the base is forgotten, and never handled', async () => {
  const { take, begun, finish, said } = line();
  take(1);
  await finish(1);
  take(2, 2);
  await finish(2);
  take(1, 1);
  expect(said).toEqual(['1', '2']);
  expect(begun).toEqual([1, 2]);
});

test('ENV23: what the edge has given up is stepped over', async () => {
  const rig = line();
  rig.take(2);
  rig.take(3);
  // 1 never came, and has been answered for us.
  rig.take(4, 3);
  expect(rig.begun).toEqual([3]);
  expect(rig.skips).toBe(1);
  await rig.finish(3);
  expect(rig.begun).toEqual([3, 4]);
});

test('ENV24: what an instance leaves undone is not answered, so that another is asked', async () => {
  const { take, finish, said } = line();
  take(1);
  await finish(1, 'abandoned');
  take(1);
  expect(said).toEqual([]);
});

test('ORD5: an update waits for the requests it came after', async () => {
  const { take, update, updates, enter, finish } = line();
  take(1);
  enter(1);
  update(0);
  update(1);
  update(2);
  expect(updates).toEqual([0]);
  await finish(1);
  expect(updates).toEqual([0, 1]);
  take(2);
  await finish(2);
  expect(updates).toEqual([0, 1, 2]);
});

test('a line without work is idle', async () => {
  const { line: one, take, finish } = line();
  expect(one.idle).toBe(true);
  take(2);
  expect(one.idle).toBe(false);
  take(1);
  await finish(1);
  await finish(2);
  expect(one.idle).toBe(true);
});
