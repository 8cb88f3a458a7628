/**
 * Turns while agent, edges and session instances are killed (kill -9) at random moments: each ends once, no final is there twice or missing,
 * none is run twice, every question is answered or closed. Needs redis-server, nats-server and built packages.
 *
 *   node tests/load/turn-storm.mjs [--turns 500] [--lanes 8] [--every 800,2500] [--seed 1]
 */
import { parseArgs } from 'node:util';
import { cluster, turnStorm } from '@iris/testkit';

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '500' },
    lanes: { type: 'string', default: '8' },
    every: { type: 'string', default: '800,2500' },
    seed: { type: 'string', default: '1' },
  },
});
const all = await cluster();
try {
  const report = await turnStorm(all, {
    turns: Number(values.turns),
    lanes: Number(values.lanes),
    every_ms: values.every.split(',').map(Number),
    seed: Number(values.seed),
    say: (line) => console.log(line),
  });
  console.log(JSON.stringify(report, null, 2));
} finally {
  await all.close();
}
