import { expect, test } from '@jest/globals';
import { gather } from './gather.js';

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

function gathering(options: { calls?: number; most?: number } = {}) {
  const calls: { asked: number[]; answer(): void; fail(error: Error): void }[] = [];
  const ask = gather<number, string>({
    call: (asked) =>
      new Promise((resolve, reject) => {
        calls.push({ asked: [...asked], answer: () => resolve(asked.map(String)), fail: reject });
      }),
    soon: (run) => void setImmediate(run),
    calls: options.calls ?? 1,
    most: options.most ?? 100,
  });
  return { calls, ask };
}

test('what is asked in one tick goes as one call, and each gets its own answers', async () => {
  const { calls, ask } = gathering();
  const [one, two] = [ask([1, 2]), ask([3])];
  await turn();
  expect(calls.map(({ asked }) => asked)).toEqual([[1, 2, 3]]);
  calls[0]!.answer();
  expect(await one).toEqual(['1', '2']);
  expect(await two).toEqual(['3']);
});

test('while a call is under way the next one grows', async () => {
  const { calls, ask } = gathering();
  const first = ask([1]);
  await turn();
  const others = [ask([2]), ask([3])];
  await turn();
  expect(calls).toHaveLength(1);
  calls[0]!.answer();
  await first;
  await turn();
  expect(calls[1]?.asked).toEqual([2, 3]);
  calls[1]!.answer();
  expect(await Promise.all(others)).toEqual([['2'], ['3']]);
});

test('a call has its size, but one question is never cut', async () => {
  const { calls, ask } = gathering({ calls: 9, most: 3 });
  void ask([1, 2]);
  void ask([3, 4]);
  void ask([5, 6, 7, 8]);
  await turn();
  expect(calls.map(({ asked }) => asked)).toEqual([
    [1, 2],
    [3, 4],
    [5, 6, 7, 8],
  ]);
});

test('a call that fails fails for those in it, and the next ones go on', async () => {
  const { calls, ask } = gathering();
  const lost = ask([1]);
  await turn();
  const next = ask([2]);
  calls[0]!.fail(new Error('down'));
  await expect(lost).rejects.toThrow('down');
  await turn();
  calls[1]!.answer();
  expect(await next).toEqual(['2']);
});
