import { type Break, expectChecks } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { commands, finally_ } from '../model/commands.js';
import { newModel } from '../model/model.js';
import { newReal } from '../model/stage.js';

/** `IRIS_SEED=17` plays that one alone, `IRIS_SEED=17-40` these; `IRIS_SEEDS=1000` plays more than usual. */
const wanted = (process.env.IRIS_SEED ?? '').match(/^(\d+)(?:-(\d+))?$/);
const first = wanted ? Number(wanted[1]) : 1;
const last = wanted ? Number(wanted[2] ?? wanted[1]) : Number(process.env.IRIS_SEEDS ?? 30);
const batch = 10;

async function play(seed: number, breaks: readonly Break[] = []): Promise<void> {
  const plan = fc.commands(commands, { maxCommands: 50, size: 'max', disableReplayLog: true });
  const property = fc.asyncProperty(plan, async (chosen) => {
    const model = newModel();
    const real = await newReal(seed, model, breaks);
    try {
      await fc.asyncModelRun(() => ({ model, real }), chosen);
      await finally_(model, real);
      expectChecks(await real.tenant.evidence({ lossy: model.lossy }));
      const faults = [...real.devices, real.agent].flatMap((one) => one.faults);
      if (faults.length > 0) throw new Error(`what the gateway sent is not the protocol:\n${faults.join('\n')}`);
    } finally {
      for (const member of [...real.world.edges, ...real.world.sessions, ...real.world.workers]) member.kill();
      real.world.time.end();
    }
  });
  // One plan each: the seed alone names it. What fails is made smaller, for as long as somebody waits.
  await fc.assert(property, { seed, numRuns: 1, interruptAfterTimeLimit: 60_000, endOnFailure: breaks.length > 0 });
}

describe('O1 O2 O3 O4 O5 O6 O10 O11 SEA6 HIS7 HIS8 RCP1 RCP2 RCP3 RCP4 LNK33 LNK34 OUT13 SYN8: history, search and every device agree with a small model, whatever is done in whatever order', () => {
  const batches = Array.from({ length: Math.ceil((last - first + 1) / batch) }, (_, i) => first + i * batch);
  test.each(batches.map((from) => [from, Math.min(from + batch - 1, last)]))(
    'plans %i to %i',
    async (from, to) => {
      for (let seed = from; seed <= to; seed++)
        await play(seed).catch((error: Error) => {
          throw new Error(
            `plan ${seed}: run it alone with\n  IRIS_SEED=${seed} npm test -- --only flow tests/flow/model.flow.test.ts\n${error.message}\n${String((error as { cause?: unknown }).cause ?? '')}`,
          );
        });
    },
    120_000,
  );
});

if (!wanted) {
  describe('a promise broken on purpose is noticed', () => {
    test.each<[Break, RegExp]>([
      ['answer_before_store', /O1|O11/],
      ['keep_deleted', /O11/],
      ['search_behind', /O1 O11: search/],
      ['skip_in_history', /history of/],
      ['confirm_ahead', /O[16]|shows/],
      ['double_idle', /O10/],
      ['no_repair', /O[16]|shows/],
      ['lose_receipts', /RCP1/],
      ['early_receipts', /RCP1/],
      ['mixed_receipts', /RCP1/],
      ['forget_owed_receipts', /RCP2/],
      ['lose_reads', /RCP4/],
      ['reads_go_back', /RCP[34]/],
    ])(
      '%s',
      async (broken, oracle) => {
        const noticed: string[] = [];
        for (let seed = 1; seed <= 30 && noticed.length === 0; seed++)
          await play(seed, [broken]).catch((error: Error) => {
            const text = `${error.message} ${String((error as { cause?: unknown }).cause ?? '')}`;
            if (oracle.test(text)) noticed.push(text);
          });
        expect(noticed).toHaveLength(1);
      },
      60_000,
    );
  });
}
