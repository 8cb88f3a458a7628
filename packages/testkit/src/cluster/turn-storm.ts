import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Chance, chance } from '../chance.js';
import type { AnyFrame } from '../frames.js';
import type { TestDevice } from '../test-device.js';
import { balancer } from './balancer.js';
import type { Cluster, ClusterTenant } from './cluster.js';
import { type StormReport, verifyStorm } from './storm-verify.js';
import { keepDevice } from './streaming.js';

export interface StormOptions {
  readonly turns: number;
  /** Conversations side by side. */
  readonly lanes: number;
  /** Milliseconds between two kills: at least, and at most. */
  readonly every_ms: readonly [number, number];
  readonly seed: number;
  readonly say?: (line: string) => void;
}

/**
 * Turns in several conversations at once, with tools and questions, while agent, edges and session instances are killed at random moments
 * and come back. Afterwards: each turn has ended once; no final is there twice, and none is missing of an agent that said it; no turn
 * was begun twice; every question was closed once, with the answer if there was one; and the checks over all that two devices saw.
 * @throws with what does not hold
 */
export async function turnStorm(cluster: Cluster, options: StormOptions): Promise<StormReport> {
  const { say = () => {} } = options;
  const dice = chance(options.seed);
  const dir = mkdtempSync(join(tmpdir(), 'iris-storm-'));
  const log = join(dir, 'agent.jsonl');
  const tenant = await cluster.tenant({ running_turns: options.lanes + 1 });
  const front = await balancer(cluster);
  const agent = stormAgent({ url: `ws://127.0.0.1:${front.port}/agent`, token: tenant.agent_token, dir, log });
  const alive = () => cluster.edges.flatMap(({ alive }, index) => (alive ? [index] : []));
  const a = await tenant.join('phone', { edge: alive()[0]!, caps: { cursors: true } });
  const b = await tenant.join('tablet', { edge: alive().at(-1)!, caps: { cursors: true } });
  await Promise.all([a.sync(), b.sync()]);
  const attached = [keepDevice(cluster, tenant, a), keepDevice(cluster, tenant, b)];
  const begun = Date.now();
  const kills = { agent: 0, edge: 0, session: 0 };
  let over = false;
  try {
    const lanes: string[] = [];
    for (let i = 0; i < options.lanes; i++)
      lanes.push((await a.request('channel.create', { name: `lane ${i}` }, { within_ms: 15_000 })).payload.chat_id as string);
    const answering = answerPickers(a, dice.fork('answers'), () => over);
    const killing = kill(cluster, agent, dice.fork('kills'), options.every_ms, kills, () => over, say);
    let next = 0;
    const worker = async (chat_id: string) => {
      for (let number = next++; number < options.turns; number = next++) {
        await oneTurn(cluster, a, chat_id, `storm ${number}`);
        if (number % 50 === 49) say(`${number + 1} turns, killed ${JSON.stringify(kills)}`);
      }
    };
    await Promise.all(lanes.map(worker));
    over = true;
    await Promise.all([killing, answering]);
    await quiet(cluster, tenant, [a, b]);
    return { ...(await verifyStorm(cluster, tenant, log, options.turns)), kills, took_ms: Date.now() - begun };
  } finally {
    over = true;
    for (const one of attached) one.end();
    a.close();
    b.close();
    await agent.kill();
    await front.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** As an app does it: said until it is answered; and then until the lane is idle. */
async function oneTurn(cluster: Cluster, device: TestDevice, chat_id: string, text: string): Promise<void> {
  const give_up = Date.now() + 120_000;
  for (;;) {
    const answer = await device.send(text, { chat_id, client_ref: text, within_ms: 12_000 }).catch(() => undefined);
    if (answer?.type === 'message') break;
    if (Date.now() > give_up) throw new Error(`"${text}" is not answered: ${JSON.stringify(answer?.payload)}`);
    await cluster.patience.wait(() => (device.connected && device.connections.at(-1)?.synced !== undefined) || undefined, {
      within_ms: 60_000,
      describe: () => `${device.device_id} does not come back`,
    });
  }
  const idle = () => {
    const frames = device.frames((frame) => frame.chat_id === chat_id || frame.payload.chat_id === chat_id);
    const at = frames.findIndex((frame) => frame.type === 'message' && frame.payload.text === text);
    return frames.slice(at + 1).some(({ type }) => type === 'agent.idle') || undefined;
  };
  await cluster.patience.wait(idle, { within_ms: 120_000, describe: () => `the turn of "${text}" does not end` });
}

/** Half of the questions are answered, by chance; the others are left to their time. */
async function answerPickers(device: TestDevice, dice: Chance, over: () => boolean): Promise<void> {
  const seen = new Set<string>();
  while (!over()) {
    for (const { payload, chat_id } of device.frames('picker.choice')) {
      if (seen.has(payload.picker_id!)) continue;
      seen.add(payload.picker_id!);
      if (dice.unit() < 0.5 || !device.connected) continue;
      device
        .request('picker.select', { picker_id: payload.picker_id!, value: 'yes' }, chat_id === undefined ? {} : { chat_id })
        .catch(() => {});
    }
    await pause(50);
  }
}

async function kill(
  cluster: Cluster,
  agent: StormAgent,
  dice: Chance,
  [least, most]: readonly [number, number],
  kills: StormReport['kills'] & Record<'agent' | 'edge' | 'session', number>,
  over: () => boolean,
  say: (line: string) => void,
): Promise<void> {
  // Each of them in every three, in an order of chance.
  let left: ('agent' | 'edge' | 'session')[] = [];
  while (!over()) {
    await pause(least + dice.unit() * (most - least));
    if (over()) return;
    if (left.length === 0) left = ['agent', 'edge', 'session'];
    const one = left.splice(dice.between(0, left.length - 1), 1)[0]!;
    kills[one]++;
    if (one === 'agent') {
      await agent.kill();
      agent.start();
      continue;
    }
    const parts = (one === 'edge' ? cluster.edges : cluster.sessions).filter(({ alive }) => alive);
    const victim = dice.pick(parts);
    const [started] = await Promise.allSettled([one === 'edge' ? cluster.startEdge() : cluster.startSession(), victim.kill()]);
    if (started.status === 'rejected') say(`a new ${one} did not start: ${String(started.reason).slice(0, 300)}`);
  }
}

/** Everything has come to rest: both devices are caught up, and nobody is busy. */
async function quiet(cluster: Cluster, tenant: ClusterTenant, devices: readonly TestDevice[]): Promise<void> {
  const give_up = Date.now() + 90_000;
  for (;;) {
    const look = await tenant.join(`look-${Date.now()}`, { edge: cluster.edges.findLastIndex(({ alive }) => alive) });
    await look.request('ping', { ts: 1 });
    const going = look.frames((frame: AnyFrame) => frame.type === 'agent.busy' || frame.type.startsWith('picker.'));
    look.close();
    if (going.length === 0 && devices.every(({ connected, connections }) => connected && connections.at(-1)?.synced !== undefined)) return;
    if (Date.now() > give_up)
      throw new Error(`it does not come to rest: ${going.map(({ type, chat_id }) => `${type} ${chat_id}`).join(', ')}`);
    await pause(500);
  }
}

interface StormAgent {
  start(): void;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

function stormAgent({ url, token, dir, log }: { url: string; token: string; dir: string; log: string }): StormAgent {
  const main = fileURLToPath(new URL('../../dist/cluster/storm-agent-main.js', import.meta.url));
  const start = () =>
    spawn(process.execPath, [main], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { PATH: process.env.PATH, IRIS_GATEWAY_URL: url, IRIS_AGENT_TOKEN: token, IRIS_SPOOL_DIR: join(dir, 'spool'), STORM_LOG: log },
    });
  let child = start();
  return {
    start() {
      child = start();
    },
    async kill() {
      const gone = new Promise((resolve) =>
        child.exitCode !== null || child.signalCode !== null ? resolve(0) : child.once('exit', resolve),
      );
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** Between two looks at what no frame tells. */
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
