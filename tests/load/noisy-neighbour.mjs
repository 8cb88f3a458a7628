/**
 * A noisy tenant at ten times its quota beside a quiet one, on the same edges and session instance: how long the quiet one's sends take,
 * alone and beside it, in turns. Needs a build, redis-server and nats-server.
 *
 *   node tests/load/noisy-neighbour.mjs [--rounds 4] [--seconds 5]
 *
 * The client of the noise is a process of its own, so that what it costs is not taken for what the service does with it.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cluster, dialUrl, realPatience, testDevice } from '@iris/testkit';

const sendsPerSecond = 20;
const noisyDevices = 5;
/** Enough of them for a p99 that is not one stray moment. */
const quietDevices = 4;

if (process.argv[2] === 'noise') await noise(JSON.parse(process.argv[3]));
else await measure();

/** Each device sends at ten times what it may, until its parent goes. */
async function noise({ url, token }) {
  const patience = realPatience(60_000);
  let answered = 0;
  let refused = 0;
  const devices = await Promise.all(
    Array.from({ length: noisyDevices }, async (_, n) => {
      const device = testDevice({ device_id: `noisy${n}`, token, patience, dial: dialUrl(url) });
      // Who does not listen to refusals is thrown out, and comes back.
      const join = () =>
        device.join().then(
          () => void device.closed({ within_ms: 10 ** 9 }).then(join, join),
          () => setTimeout(join, 500),
        );
      await device.join();
      void device.closed({ within_ms: 10 ** 9 }).then(join, join);
      // Nobody answers here: what waits would make one lane long.
      const { payload } = await device.request('channel.create', { name: `noise ${n}` });
      return { device, chat_id: payload.chat_id };
    }),
  );
  process.send('ready');
  process.on('disconnect', () => process.exit(0));
  let on = false;
  process.on('message', (word) => {
    if (word === 'count') process.send({ answered, refused });
    else on = word === 'on';
  });
  setInterval(() => {
    if (!on) return;
    for (const { device, chat_id } of devices) {
      for (let n = 0; n < sendsPerSecond; n++)
        device.send('noise', { chat_id }).then(
          ({ type }) => (type === 'error' ? refused++ : answered++),
          () => refused++,
        );
    }
  }, 100);
}

async function measure() {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '4' }, seconds: { type: 'string', default: '5' } } });
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  const system = await cluster({ edges: 1, sessions: 1 });
  const quotas = {
    sends_per_second: sendsPerSecond,
    sends_burst: sendsPerSecond,
    frames_per_second: 1_000,
    frames_burst: 2_000,
    tenant_sends_per_second: sendsPerSecond * noisyDevices,
    tenant_sends_burst: sendsPerSecond * noisyDevices,
    waiting_per_lane: 1_000_000,
  };
  const [quiet, loud] = [await system.tenant({ ...quotas, sends_burst: 1_000 }), await system.tenant(quotas)];
  const users = await Promise.all(Array.from({ length: quietDevices }, (_, n) => quiet.join(`user${n}`)));
  const child = fork(fileURLToPath(import.meta.url), ['noise', JSON.stringify({ url: system.edges[0].url, token: loud.device_token })]);
  await new Promise((resolve) => child.once('message', resolve));

  const times = { alone: [], beside: [] };
  const run = async (how) => {
    child.send(how === 'beside' ? 'on' : 'off');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const until = performance.now() + seconds * 1_000;
    const ask = async (user, n) => {
      await new Promise((resolve) => setTimeout(resolve, n * 15));
      while (performance.now() < until) {
        const asked = performance.now();
        const answer = await user.send('quiet');
        if (answer.type !== 'message') throw new Error(JSON.stringify(answer));
        times[how].push(performance.now() - asked);
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
    };
    await Promise.all(users.map(ask));
  };
  for (let round = 0; round < rounds; round++) for (const how of round % 2 ? ['beside', 'alone'] : ['alone', 'beside']) await run(how);
  child.send('count');
  const { answered, refused } = await new Promise((resolve) => child.once('message', resolve));
  const at = (list, share) => list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))];
  for (const how of ['alone', 'beside'])
    console.log(`${how}: ${times[how].length} sends, p50 ${at(times[how], 0.5).toFixed(1)} ms, p99 ${at(times[how], 0.99).toFixed(1)} ms`);
  console.log(`p99 beside the noise ${((at(times.beside, 0.99) / at(times.alone, 0.99) - 1) * 100).toFixed(0)} % above alone`);
  console.log(`the noise: ${answered} taken, ${refused} refused`);
  child.disconnect();
  for (const user of users) user.close();
  await system.close();
  process.exit(0);
}
