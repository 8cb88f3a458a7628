/**
 * Two tenants with everything named alike, on real processes and services: devices, channels, installations, references, messages. Only the canary words differ,
 * one for each tenant and channel. Turns run in parallel while edges, sessions and workers are killed; no canary crosses: not in a frame, in history, to an
 * agent, or in a push. Needs redis-server, nats-server and built packages.
 *
 *   node tests/load/canary.mjs [--turns 200] [--channels 10] [--kills 10] [--seed 1]
 *
 * Exit code 1 when one did, when a turn is missing, or when a check over all that was seen does not hold.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '@iris/runtime';
import { chance, checkPushes, cluster, expectChecks, keepAgent, keepDevice, outboxLog, pushEvidence, serveFakes } from '@iris/testkit';

const option = (value) => ({ type: 'string', default: String(value) });
const { values } = parseArgs({ options: { turns: option(200), channels: option(10), kills: option(10), seed: option(1) } });
const [turns, channels, kills, seed] = ['turns', 'channels', 'kills', 'seed'].map((name) => Number(values[name]));
const words = ['alpha', 'beta'];
const canaries = /\b(?:alpha|beta)-c\d+\b/g;
const dice = chance(seed);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const within_ms = 120_000;

const providers = await serveFakes(systemClock);
const set = Object.fromEntries(Object.entries(providers.settings).map(([name, value]) => [name, String(value)]));
const world = await cluster({ edges: 2, sessions: 2, workers: 1, set });
const wrong = [];
const attached = [];
const count = { frames: 0, pushes: 0, history: 0, turns: 0 };
try {
  const houses = [];
  for (const word of words) houses.push(await house(word));
  const begun = Date.now();
  const killed = { edge: 0, session: 0, worker: 0 };
  const rounds = Math.ceil(turns / (houses.length * channels));
  for (let round = 0; round < rounds; round++) {
    const asking = houses.flatMap((one) =>
      one.chats.map((chat_id, n) => ask(one, chat_id, `${one.word}-c${n} question ${round}`, `${n} ${round}`)),
    );
    // In the midst of it, so many each round that all come to be.
    const until_now = Math.floor((round * kills) / rounds);
    for (let n = until_now; n < Math.floor(((round + 1) * kills) / rounds); n++) await killOne(killed);
    await Promise.all(asking);
  }
  await until(
    () => houses.every(({ agent }) => agent.unacked.length === 0 && agent.turns.size >= rounds * channels),
    'not every turn was run',
  );
  for (const one of houses)
    await until(
      () => one.devices.every(({ connected, connections }) => connected && connections.at(-1)?.synced !== undefined),
      'a device is missing',
    );
  await quiet();
  for (const one of houses) await judge(one, rounds);
  console.log(
    `${rounds * channels * houses.length} turns in ${((Date.now() - begun) / 1000).toFixed(1)} s, killed ${JSON.stringify(killed)}; looked at ${count.frames} frames, ${count.history} lanes of history, ${count.turns} turns at agents, ${count.pushes} pushes`,
  );
} finally {
  for (const one of attached) one.end();
  await world.close();
  await providers.close();
}
for (const line of wrong.slice(0, 25)) console.log(`CROSSED  ${line}`);
console.log(wrong.length === 0 ? 'no canary crossed' : `${wrong.length} crossed, or do not hold`);
process.exit(wrong.length === 0 ? 0 : 1);

async function house(word) {
  const tenant = await world.tenant({ running_turns: channels + 2 });
  const agent = tenant.agent({ install_id: 'the same', script: (turn) => answer(turn) });
  attached.push(keepAgent(world, tenant, agent));
  const devices = [tenant.device('phone', { caps: { cursors: true } }), tenant.device('tablet', { edge: 1 })];
  for (const device of devices) attached.push(keepDevice(world, tenant, device));
  await until(
    () => agent.connected && devices.every(({ connections }) => connections.at(-1)?.synced !== undefined),
    `${word} does not come`,
  );
  const chats = [];
  for (let n = 0; n < channels; n++)
    chats.push((await devices[0].request('channel.create', { name: `channel ${n}` }, { within_ms: 15_000 })).payload.chat_id);
  // One that was here a while ago, and is pushed to.
  const { tenant_id } = tenant;
  const at = Date.now() - 60_000;
  await world.store.devices.hello({ tenant_id, device_id: 'watch', name: '', caps: {}, token_id: 'device-token', at, max: 100 });
  await world.store.pushTargets.register(tenant_id, 'watch', [{ kind: 'fcm', address: `watch of ${word}` }], at);
  return { word, tenant, agent, devices, chats };

  async function answer(turn) {
    const mark = `${word}-c${chats.indexOf(turn.chat_id)}`;
    turn.accept();
    const id = turn.start('a1');
    turn.toolStart(0, 'terminal', { preview: mark });
    await sleep(dice.between(0, 60));
    turn.delta(`${mark} says `, id);
    turn.toolEnd(0, { output_preview: mark });
    await sleep(dice.between(0, 60));
    turn.delta(`to "${turn.text}"`, id);
    turn.stop({ message_id: id });
    turn.end();
  }
}

/** As an app does it: said until it is answered. */
async function ask({ devices }, chat_id, text, client_ref) {
  const device = devices[dice.between(0, 1)];
  const give_up = Date.now() + within_ms;
  for (;;) {
    const said = await device.send(text, { chat_id, client_ref, within_ms: 12_000 }).catch(() => undefined);
    if (said?.type === 'message') return;
    if (Date.now() > give_up) throw new Error(`"${text}" is not answered: ${JSON.stringify(said?.payload)}`);
    await until(() => device.connected && device.connections.at(-1)?.synced !== undefined, `${device.device_id} does not come back`);
  }
}

async function killOne(killed) {
  await sleep(dice.between(0, 150));
  const [name, all, start] = dice.pick([
    ['edge', world.edges, world.startEdge],
    ['session', world.sessions, world.startSession],
    ['worker', world.workers, world.startWorker],
  ]);
  await dice.pick(all.filter(({ alive }) => alive)).kill();
  killed[name]++;
  await start();
}

async function quiet() {
  for (let still = 0; still < 3; ) {
    const due = await world.store.pushLedger.due(Date.now() + 86_400_000, 1);
    const overdue = await world.store.pushFrames.overdue(Date.now() + 86_400_000, 1);
    still = due.length + overdue.length === 0 ? still + 1 : 0;
    await sleep(1_000);
  }
}

async function judge({ word, tenant, agent, devices, chats }, rounds) {
  const look = (where, chat_id, text) => {
    for (const [mark] of text.matchAll(canaries))
      if (mark !== `${word}-c${chats.indexOf(chat_id)}`) wrong.push(`${word}, ${where} in ${chat_id}: ${mark}`);
  };
  for (const device of devices)
    for (const { frame } of device.received.all) {
      count.frames++;
      look(`${device.device_id} heard ${frame.type}`, frame.chat_id, JSON.stringify(frame));
    }
  const asked = new Set();
  for (const turn of agent.turns.values()) {
    count.turns++;
    asked.add(turn.text);
    look('the agent was asked', turn.chat_id, turn.text);
  }
  for (const n of chats.keys())
    for (let round = 0; round < rounds; round++)
      if (!asked.has(`${word}-c${n} question ${round}`)) wrong.push(`${word}: question ${round} of channel ${n} was never asked`);
  const other = words.find((one) => one !== word);
  for (const { token, data } of providers.fcm.accepted) {
    if (token !== `watch of ${word}`) continue;
    count.pushes++;
    if (data.type === 'push') look('a push', data.chat_id, JSON.stringify(data));
    else if (JSON.stringify(data).includes(other)) wrong.push(`${word}: a withdrawal names ${other}`);
  }
  const evidence = { ...(await tenant.evidence()), log: await outboxLog(world, tenant) };
  for (const [lane, rows] of evidence.histories) {
    count.history++;
    look('history', lane.split('/')[0], JSON.stringify(rows));
  }
  for (const push of await pushEvidence(world.store, providers, tenant.tenant_id))
    for (const { message } of checkPushes(push)) wrong.push(`${word}, O12: ${message}`);
  try {
    expectChecks({ ...evidence, devices });
  } catch (error) {
    wrong.push(`${word}: ${error.message}`);
  }
}

async function until(found, what) {
  const give_up = Date.now() + within_ms;
  while (!found()) {
    if (Date.now() > give_up) throw new Error(what);
    await sleep(50);
  }
}
