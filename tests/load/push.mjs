/**
 * One buzz, or none, under kills: devices in random states, frames worth a push, workers and Redis killed meanwhile, on real processes and services.
 * Then what providers accepted is held against what should have been, and against the ledger. Needs `npm run build`, redis-server and nats-server.
 *
 *   node tests/load/push.mjs [--devices 10000] [--frames 5000] [--tenants 100] [--live 200] [--workers 2] [--kills 8] [--seed 1]
 *   node tests/load/push.mjs --bench [--devices 2000]      checks and sends a second of one worker, beside bare BullMQ jobs, in turns
 *
 * Exit code 1 when a promise was broken. States: live (a real socket that answers), half-open (a real socket that reads nothing and answers no ping),
 * just gone, gone for days, muted, read elsewhere, dead token, answers slowly, refused now and then.
 */
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { systemClock } from '@iris/runtime';
import { checkPushes, cluster, fcmError, serveFakes } from '@iris/testkit';
import { measure } from './push-bench.mjs';

const number = (value) => ({ type: 'string', default: String(value) });
const { values } = parseArgs({
  options: {
    devices: { type: 'string' },
    frames: number(5_000),
    tenants: number(100),
    live: number(200),
    workers: number(2),
    kills: number(8),
    seed: number(1),
    bench: { type: 'boolean', default: false },
  },
});
const [devices, frames, tenants, live, workers, kills, seed] = ['devices', 'frames', 'tenants', 'live', 'workers', 'kills', 'seed'].map(
  (name) => Number(values[name] ?? (values.bench ? 2_000 : 10_000)),
);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** mulberry32: the same seed gives the same states. */
let state = seed;
const random = () => {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};
const pick = (list) => list[Math.floor(random() * list.length)];
const say = (line) => console.log(`${(performance.now() / 1000).toFixed(1).padStart(7)} s  ${line}`);

const providers = await serveFakes(systemClock);
const settings = Object.fromEntries(
  Object.entries(providers.settings).map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]),
);
const world = await cluster({
  edges: 1,
  sessions: 1,
  workers: values.bench ? 1 : workers,
  set: { ...settings, push_fcm_per_second: 100_000, push_backoff_ms: 500, devices: 100_000, sockets_before_hello: 100_000 },
});
const { store } = world;
let broken = 0;
/** Nobody comes back any more. */
let leaving = false;
const must = (holds, what) => {
  if (holds) return;
  broken++;
  console.log(`BROKEN  ${what}`);
};

try {
  if (values.bench) await measure({ world, providers, devices, say });
  else await run();
} finally {
  await world.close();
  await providers.close();
}
process.exitCode = broken > 0 ? 1 : 0;

async function run() {
  const kinds = ['just gone', 'gone for days', 'muted', 'read elsewhere', 'dead token', 'slow', 'refused at times'];
  const all = [];
  const spaces = [];
  say(`${tenants} tenants, ${devices} devices, ${live} of them with sockets`);
  for (let t = 0; t < tenants; t++) {
    const tenant = await world.tenant();
    // One message makes the outbox know the tenant; its sender is what reads "elsewhere".
    const reader = await tenant.join(`reader-${t}`);
    comeBack(reader, async () => {
      await reader.join();
      await reader.sync();
    });
    spaces.push({ tenant, reader });
  }
  const sockets = { live: 0, 'half-open': 0 };
  for (let d = 0; d < devices; d++) {
    const space = spaces[d % tenants];
    const kind = d < live ? (d % 4 === 0 ? 'half-open' : 'live') : pick(kinds);
    all.push({ device_id: `d${d}`, token: `token-${d}`, kind, space });
    if (kind in sockets) sockets[kind]++;
  }
  const now = Date.now();
  const place = async ({ device_id, token, kind, space }) => {
    const { tenant_id } = space.tenant;
    const at = kind === 'gone for days' ? now - 5 * 86_400_000 : now - 10_000;
    if (kind === 'live' || kind === 'half-open') return;
    await store.devices.hello({ tenant_id, device_id, name: '', caps: {}, token_id: 'device-token', at, max: 1e6 });
    await store.pushTargets.register(tenant_id, device_id, [{ kind: 'fcm', address: token }], at);
    if (kind === 'muted')
      await store.pushRules.set({ tenant_id, device_id, chat_id: null, thread_id: null, muted_until: now + 86_400_000, quiet: null });
    if (kind === 'dead token') providers.fcm.unregister(token);
    if (kind === 'slow') providers.fcm.set(token, { delay_ms: 400 });
    if (kind === 'refused at times') providers.fcm.set(token, { answer: fcmError(503, 'UNAVAILABLE'), times: 2 });
  };
  for (let i = 0; i < all.length; i += 16) await Promise.all(all.slice(i, i + 16).map(place));
  const open = [];
  for (const one of all.filter(({ kind }) => kind === 'live' || kind === 'half-open')) {
    const device = one.space.tenant.device(one.device_id, { caps: { cursors: true } });
    await device.connect();
    await device.hello({ fcm_token: one.token });
    await device.sync();
    if (one.kind === 'live')
      comeBack(device, async () => {
        await device.join();
        await device.sync();
      });
    if (one.kind === 'half-open') {
      device.autoPong(false);
      device.autoAck(false);
    }
    open.push({ ...one, device });
  }
  say('everyone is in place');

  const agents = [];
  for (const { tenant } of spaces) agents.push(await linked(tenant));
  const lane = { chat_id: 'android:default', thread_id: null };
  const began = performance.now();
  let killed = 0;
  for (let f = 0; f < frames; f++) {
    const t = f % tenants;
    agents[t].say('message', { message_id: `f${f}`, role: 'cron', text: `frame ${f}` }, lane);
    // A person at the reader's device sees some of them at once.
    if (t % 5 === 0 && random() < 0.3) readNewest(spaces[t], lane);
    if (t === tenants - 1) await sleep(150);
    if (kills > 0 && f > 0 && f % Math.ceil(frames / (kills + 1)) === 0) {
      killed++;
      if (killed === Math.ceil(kills / 2)) {
        say('Redis is killed, and comes back empty');
        await world.redis.kill();
        await sleep(1_500);
        await world.redis.start();
      } else {
        const victim = world.workers.find(({ alive }) => alive);
        say(`${victim.name} is killed`);
        await victim.kill();
        await world.startWorker();
      }
    }
  }
  while (agents.some(({ unacked }) => unacked.length > 0)) await sleep(200);
  leaving = true;
  say(`${frames} frames in ${((performance.now() - began) / 1000).toFixed(1)} s; waiting until all is decided and sent`);
  await settled();
  await judge(all, open);
}

function readNewest({ reader }, lane) {
  const newest = reader.received.all.findLast(({ frame }) => frame.type === 'message');
  if (newest !== undefined && reader.connected) reader.say('read.receipt', { message_id: newest.frame.payload.message_id }, lane);
}

async function linked(tenant) {
  const agent = tenant.agent();
  const attach = async () => {
    const { type, payload } = await agent.connect();
    if (type !== 'hello.ack') throw new Error(JSON.stringify(payload));
  };
  await attach();
  comeBack(agent, attach);
  return agent;
}

/** As every real device and agent: whenever its line ends it dials again. */
async function comeBack(one, again) {
  for (;;) {
    await one.closed({ within_ms: 1e9 });
    while (!one.connected) {
      if (leaving) return;
      await sleep(200);
      await again().catch(() => {});
    }
  }
}

/** Until nothing is pending and nothing undecided for a while. */
async function settled() {
  for (let quiet = 0, n = 0; quiet < 4 && n < 600; n++) {
    const due = await store.pushLedger.due(Date.now() + 86_400_000, 1);
    const overdue = await store.pushFrames.overdue(Date.now() + 86_400_000, 1);
    quiet = due.length + overdue.length === 0 ? quiet + 1 : 0;
    await sleep(1_000);
  }
}

async function judge(all, open) {
  const accepted = new Map();
  for (const { token, data, at } of providers.fcm.accepted) {
    if (data.type !== 'push') continue;
    const of = accepted.get(token) ?? [];
    of.push({ cursor: Number(data.cursor), at });
    accepted.set(token, of);
  }
  const count = {};
  let handedTwice = 0;
  let pushes = 0;
  const lags = [];
  for (const { device_id, token, kind, space } of all) {
    const { tenant_id } = space.tenant;
    const rows = await store.pushLedger.explain(tenant_id, device_id, { limit: 100_000 });
    const got = accepted.get(token) ?? [];
    const shown = new Set(got.map(({ cursor }) => cursor));
    pushes += got.length;
    handedTwice += got.length - shown.size;
    const sent = rows.filter(({ state }) => state === 'sent');
    for (const { state, why } of rows) {
      const key = `${kind}: ${state}${why === null ? '' : `, ${why}`}`;
      count[key] = (count[key] ?? 0) + 1;
    }
    const device = await store.devices.get(tenant_id, device_id);
    const { last_pushed_cursor } = device;
    // O12, as everywhere.
    for (const { message } of checkPushes({ device_id: `${device_id} (${kind})`, rows, accepted: got, last_pushed_cursor }))
      must(false, message);
    const open_ = rows.filter(({ state }) => state === 'pending' || state === 'sending');
    must(open_.length === 0, `${device_id} (${kind}): ${open_.length} never came to an end`);
    const highest = Math.max(0, ...sent.map(({ covers }) => covers));
    must(last_pushed_cursor === highest, `${device_id}: last_pushed_cursor ${last_pushed_cursor}, sent up to ${highest}`);
    if (kind === 'live') must(got.length === 0, `${device_id}: live, and pushed ${got.length} times`);
    if (kind === 'muted' || kind === 'dead token') must(got.length === 0, `${device_id}: ${kind}, and pushed`);
    if (['just gone', 'gone for days', 'slow', 'refused at times', 'read elsewhere', 'half-open'].includes(kind)) {
      // Every frame is sent, stood for by another of its lane, or rightly not.
      const right = new Set(['read', 'confirmed', 'a newer push of its lane', 'hello', 'deleted']);
      const missed = rows.filter(({ state, why }) => state === 'failed' || (state === 'skipped' && !right.has(why)));
      must(missed.length === 0, `${device_id} (${kind}): missed ${missed.map(({ cursor, why }) => `${cursor} ${why}`).join('; ')}`);
      must(rows.length > 0, `${device_id} (${kind}): the ledger knows nothing of it`);
    }
    if (kind === 'half-open') {
      const noted = await store.pushFrames.get(
        tenant_id,
        sent.map(({ cursor }) => cursor),
      );
      for (const { cursor, at } of noted) {
        const push = got.find((one) => one.cursor === (sent.find((row) => row.cursor === cursor)?.covers ?? cursor));
        if (push) lags.push(push.at - at);
      }
    }
  }
  for (const { device, kind, device_id } of open)
    if (kind === 'live') must(device.connected, `${device_id}: a live device lost its connection`);
  lags.sort((a, b) => a - b);
  say(`${pushes} pushes accepted; handed over twice after a kill, shown once: ${handedTwice}`);
  if (lags.length > 0) {
    say(`half-open: frame to push, median ${lags[lags.length >> 1]} ms, slowest ${lags.at(-1)} ms of ${lags.length}`);
    // While Redis was away, or a worker was dead, none could leave.
    must(lags[lags.length >> 1] < 30_000, 'half-open: the push left more than 30 s after the frame');
  }
  for (const [key, n] of Object.entries(count).sort()) console.log(`${String(n).padStart(9)}  ${key}`);
  console.log(broken === 0 ? 'every promise held' : `${broken} promises broken`);
}
