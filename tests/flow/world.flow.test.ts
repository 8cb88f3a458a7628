import { type Break, type Played, playSchedule } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

/** `IRIS_SEED=17` plays that one alone, `IRIS_SEED=17-40` these; `IRIS_SEEDS=1000` plays more than usual. */
const wanted = (process.env.IRIS_SEED ?? '').match(/^(\d+)(?:-(\d+))?$/);
const first = wanted ? Number(wanted[1]) : 1;
const last = wanted ? Number(wanted[2] ?? wanted[1]) : Number(process.env.IRIS_SEEDS ?? 60);
const batch = 50;

const command = (seed: number) => `IRIS_SEED=${seed} npm test -- --only flow tests/flow/world.flow.test.ts`;
const report = ({ seed, violations, actions }: Played) =>
  `seed ${seed}: run it alone with\n  ${command(seed)}\n${violations}\nwhat happened:\n${actions.map((line) => `  ${line}`).join('\n')}`;

describe('O1 O2 O3 O4 O5 O6 O10 OUT8 OUT10 OUT13 ORD1 ORD2 TRN3 TRN8 ENV21 ENV24: whatever the bus loses, repeats and reorders, and whoever is killed', () => {
  const batches = Array.from({ length: Math.ceil((last - first + 1) / batch) }, (_, i) => first + i * batch);
  test.each(batches.map((from) => [from, Math.min(from + batch - 1, last)]))(
    'schedules %i to %i',
    async (from, to) => {
      const failed: Played[] = [];
      for (let seed = from; seed <= to; seed++) {
        const played = await playSchedule(seed);
        if (played.violations !== undefined) failed.push(played);
      }
      if (failed.length > 0)
        throw new Error(
          `${failed.length} of ${to - from + 1} schedules failed: ${failed.map(({ seed }) => seed).join(', ')}\n${failed.slice(0, 2).map(report).join('\n\n')}`,
        );
    },
    120_000,
  );
});

if (!wanted) {
  test('the same seed plays the same schedule', async () => {
    const [one, two] = [await playSchedule(7), await playSchedule(7)];
    expect(two).toEqual(one);
    expect((await playSchedule(8)).actions).not.toEqual(one.actions);
  });

  describe('a promise broken on purpose is noticed', () => {
    test.each<[Break, RegExp]>([
      ['forget_keys', /O2/],
      ['no_repair', /O[16]|cannot come back|not answered/],
      ['answer_before_store', /O1|O2/],
      ['reuse_cursors', /O4/],
      ['double_idle', /O10/],
      ['stale_updates', /O3|O10/],
      ['answer_twice', /O5/],
      ['confirm_ahead', /O[16]/],
      ['hide_gaps', /O[1346]/],
    ])(
      '%s',
      async (broken, oracle) => {
        const noticed: string[] = [];
        for (let seed = 1; seed <= 60 && noticed.length === 0; seed++) {
          const { violations } = await playSchedule(seed, { breaks: [broken] });
          if (violations !== undefined && oracle.test(violations)) noticed.push(violations);
        }
        expect(noticed).toHaveLength(1);
      },
      60_000,
    );
  });
}
