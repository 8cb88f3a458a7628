/** Checks and sends a second of one worker, beside bare BullMQ jobs of the same number: see push.mjs. */
import { performance } from 'node:perf_hooks';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const rounds = 3;

/**
 * One tenant with so many devices, all away: a frame is one check and a push to each. In turns with as many bare jobs, so that what else the machine
 * does hits both; figures are medians.
 */
export async function measure({ world, providers, devices, say }) {
  const { store } = world;
  const tenant = await world.tenant();
  const reader = await tenant.join('reader');
  const agent = tenant.agent();
  await agent.connect();
  const at = Date.now() - 60_000;
  for (let d = 0; d < devices; d++) {
    const device_id = `d${d}`;
    await store.devices.hello({ tenant_id: tenant.tenant_id, device_id, name: '', caps: {}, token_id: 'device-token', at, max: 1e6 });
    await store.pushTargets.register(tenant.tenant_id, device_id, [{ kind: 'fcm', address: `t${d}` }], at);
  }
  const lane = { chat_id: 'android:default', thread_id: null };
  const pushes = [];
  const bare = [];
  for (let round = 0; round <= rounds; round++) {
    const before = providers.fcm.accepted.length;
    agent.say('message', { message_id: `f${round}`, role: 'cron', text: `frame ${round}` }, lane);
    await reader.next((frame) => frame.type === 'message' && frame.payload.text === `frame ${round}`);
    while (providers.fcm.accepted.length === before) await sleep(5);
    const begun = performance.now();
    while (providers.fcm.accepted.length < before + devices) await sleep(5);
    const pushed = devices / ((performance.now() - begun) / 1000);
    const jobs = await bareJobs(world.redis.url, devices, round);
    // The first round warms both up.
    if (round > 0) {
      pushes.push(pushed);
      bare.push(jobs);
    }
    say(`round ${round}: ${pushed.toFixed(0)} pushes a second, ${jobs.toFixed(0)} bare jobs a second`);
    await sleep(3_000);
  }
  const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
  console.log(
    `decided, claimed, sent over HTTP and recorded: ${median(pushes).toFixed(0)} a second and worker; bare BullMQ jobs: ${median(bare).toFixed(0)}; ratio ${(median(pushes) / median(bare)).toFixed(2)}`,
  );
}

async function bareJobs(url, count, round) {
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue(`bare-${round}`, { connection, prefix: '{bare}' });
  await queue.addBulk(
    Array.from({ length: count }, (_, n) => ({ name: 'bare', data: { tenant_id: 't', cursor: n }, opts: { removeOnComplete: true } })),
  );
  let done = 0;
  const begun = performance.now();
  const worker = new Worker(`bare-${round}`, async () => void done++, { connection, prefix: '{bare}', concurrency: 200 });
  while (done < count) await sleep(5);
  const rate = count / ((performance.now() - begun) / 1000);
  await worker.close();
  await queue.close();
  connection.disconnect();
  return rate;
}
