/**
 * A rolling restart of every edge and session instance under live load, with so many devices connected: how the sockets are closed and how fast
 * they are back, and that nothing is lost. Needs redis-server, nats-server and built packages.
 *
 *   node tests/load/rolling-restart.mjs [--devices 2000] [--edges 4] [--drain-ms 10000] [--every-ms 500]
 */
import { parseArgs } from 'node:util';
import { cluster, rollingRestart } from '@iris/testkit';

const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '2000' },
    edges: { type: 'string', default: '4' },
    'drain-ms': { type: 'string', default: '10000' },
    'every-ms': { type: 'string', default: '500' },
  },
});
const all = await cluster({ edges: Number(values.edges), set: { drain_ms: Number(values['drain-ms']) } });
try {
  const report = await rollingRestart(all, {
    devices: Number(values.devices),
    every_ms: Number(values['every-ms']),
    watched: 50,
    say: (line) => console.log(line),
  });
  console.log(JSON.stringify(report, null, 2));
} finally {
  await all.close();
}
