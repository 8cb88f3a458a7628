/**
 * npm run faults: plays schedules of the simulated world (several edges and session instances on one virtual clock, where the seed decides what is
 * lost, repeated, killed and frozen, and who runs first), and checks after each that nothing was lost, repeated or put out of order.
 * Ends with 1 when a schedule failed, and says how to play that one again.
 */
import { parseArgs } from 'node:util';
import { prepare } from './prepare.mjs';
import { say } from './step.mjs';

const usage = `npm run faults -- [--seeds 1000] [--from 1]   plays so many, from that seed on
npm run faults -- --seed 17                  plays that one, and tells everything that happened in it
  [--gentle]                                 only the bus misbehaves: nobody is killed, nothing is lost for good
  [--break NAME]                             with one promise broken on purpose, to see that it is noticed (packages/testkit/src/world/faults.ts)`;

const whole = (text, name) => {
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${name} is a whole number from 1`);
  return Number(text);
};

let options;
try {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1000' },
      from: { type: 'string', default: '1' },
      seed: { type: 'string' },
      gentle: { type: 'boolean', default: false },
      break: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    say(usage);
    process.exit(0);
  }
  const one = values.seed === undefined ? undefined : whole(values.seed, 'seed');
  options = {
    first: one ?? whole(values.from, 'from'),
    count: one === undefined ? whole(values.seeds, 'seeds') : 1,
    traced: one !== undefined,
    gentle: values.gentle,
    broken: values.break,
  };
} catch (error) {
  say(`${error.message}\n${usage}`);
  process.exit(2);
}

await prepare({ code: ['packages/testkit'], page: false });
const { playSchedule } = await import(new URL('../packages/testkit/dist/index.js', import.meta.url).href);

const { first, count, traced, gentle, broken } = options;
const how = `${gentle ? ' --gentle' : ''}${broken === undefined ? '' : ` --break ${broken}`}`;
const begun = performance.now();
const failed = [];
let frames = 0;
for (let seed = first; seed < first + count; seed++) {
  const played = await playSchedule(seed, {
    gentle,
    ...(broken === undefined ? {} : { breaks: [broken] }),
    ...(traced ? { tell: (lines) => say(lines.join('\n')) } : {}),
  });
  frames += played.frames;
  if (played.violations !== undefined) {
    failed.push(seed);
    const done = traced ? [] : played.actions.map((line) => `  ${line}`);
    say(
      [
        `seed ${seed} failed:`,
        played.violations,
        ...done,
        `again, with everything that happened: npm run faults -- --seed ${seed}${how}`,
      ].join('\n'),
    );
  }
  const played_so_far = seed - first + 1;
  if (played_so_far % 100 === 0 && played_so_far < count) say(`${played_so_far} of ${count} schedules, ${failed.length} failed`);
}
const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
say(
  `${count} ${count === 1 ? 'schedule' : 'schedules'} from seed ${first}, ${frames} durable frames, ${seconds} s: ${failed.length === 0 ? 'all hold' : `${failed.length} failed (${failed.slice(0, 20).join(', ')})`}`,
);
process.exit(failed.length === 0 ? 0 : 1);
