/** Checks and sends a second of one worker, beside bare BullMQ jobs of the same number: see push.mjs. */
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const rounds = 5;
/** A round that takes longer has failed. */
const round_ms = 30_000;

/**
 * One tenant with so many devices, all away: a frame is one check and a push to each. In turns with as many bare jobs, so that what else the machine
 * does hits both; figures are medians. Bounded: five rounds and one to warm up, of at most half a minute.
 */
export async function measure({ world, providers, devices, say }) {
  const { store } = world;
  const tenant = await world.tenant();
  const reader = await tenant.join('reader');
  const agent = tenant.agent();
  await agent.connect();
  const at = Date.now() - 60_000;
  const place = async (d) => {
    const device_id = `d${d}`;
    await store.devices.hello({ tenant_id: tenant.tenant_id, device_id, name: '', caps: {}, token_id: 'device-token', at, max: 1e6 });
    await store.pushTargets.register(tenant.tenant_id, device_id, [{ kind: 'fcm', address: `t${d}` }], at);
  };
  const left = Array.from({ length: devices }, (_, d) => d).values();
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (const d of left) await place(d);
    }),
  );
  say(`${devices} devices in place`);
  const lane = { chat_id: 'android:default', thread_id: null };
  const all = [];
  for (let round = 0; round <= rounds; round++) {
    const before = providers.fcm.accepted.length;
    agent.say('message', { message_id: `f${round}`, role: 'cron', text: `frame ${round}` }, lane);
    await reader.next((frame) => frame.type === 'message' && frame.payload.text === `frame ${round}`);
    await reached(() => providers.fcm.accepted.length > before, `round ${round}: nothing was pushed`);
    const [begun, cpu, first] = [performance.now(), spent(world.workers[0].pid), providers.fcm.accepted.length];
    await reached(() => providers.fcm.accepted.length >= before + devices, `round ${round}: not everyone was pushed`);
    const seconds = (performance.now() - begun) / 1_000;
    const pushes = (before + devices - first) / seconds;
    const busy = (spent(world.workers[0].pid) - cpu) / seconds;
    await reached(
      async () => (await store.pushLedger.due(Date.now() + 86_400_000, 1)).length === 0,
      `round ${round}: not all was written down`,
    );
    const jobs = await bareJobs(world.redis.url, devices, round);
    say(
      `round ${round}: ${pushes.toFixed(0)} pushes a second, ${jobs.toFixed(0)} bare jobs a second; the worker was busy ${(busy * 100).toFixed(0)} % of it`,
    );
    // The first round warms both up.
    if (round > 0) all.push({ pushes, jobs, ratio: pushes / jobs, busy });
  }
  const warned = new Map();
  for (const [, event] of world.workers[0].log().matchAll(/"level":"?(?:warn|40)"?.*?"(?:event|msg)":"([^"]+)"/g))
    warned.set(event, (warned.get(event) ?? 0) + 1);
  if (warned.size > 0) say(`the worker warned: ${JSON.stringify(Object.fromEntries(warned))}`);
  const median = (of) => all.map(of).sort((a, b) => a - b)[all.length >> 1];
  console.log(
    `decided, claimed, sent over HTTP and recorded: ${median(({ pushes }) => pushes).toFixed(0)} a second and worker (busy ${(median(({ busy }) => busy) * 100).toFixed(0)} %); bare BullMQ jobs: ${median(({ jobs }) => jobs).toFixed(0)}; ratio ${median(({ ratio }) => ratio).toFixed(2)}`,
  );
}

async function reached(done, what) {
  const until = performance.now() + round_ms;
  while (!(await done())) {
    if (performance.now() > until) throw new Error(`${what} within ${round_ms} ms`);
    await sleep(5);
  }
}

/** Seconds of processor time that a process has used, by Linux; NaN elsewhere. */
function spent(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return Number.NaN;
  }
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
  await reached(() => done >= count, 'bare jobs');
  const rate = count / ((performance.now() - begun) / 1000);
  await worker.close();
  await queue.close();
  connection.disconnect();
  return rate;
}
