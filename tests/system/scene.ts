import {
  type Attached,
  type Cluster,
  type ClusterEdge,
  type ClusterPart,
  type ClusterTenant,
  cluster,
  expectChecks,
  keepAgent,
  keepDevice,
  type TestAgent,
  type TestDevice,
} from '@iris/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';

/** A conversation with two devices, one on each edge, all of whom come back by themselves. */
export interface Scene {
  readonly tenant: ClusterTenant;
  readonly edges: readonly ClusterEdge[];
  readonly sessions: readonly ClusterPart[];
  readonly a: TestDevice;
  readonly b: TestDevice;
  readonly agent: TestAgent;
  /** Sends that were acknowledged. */
  readonly acknowledged: string[];
  readonly attached: readonly Attached[];
}

/** One cluster for all tests of a file: each leaves it whole again, and its own tenant behind. */
export let all: Cluster;
/** Of the test that runs. */
export let scene: Scene;

export function playScenes(): void {
  beforeAll(async () => {
    all = await cluster();
  }, 120_000);
  afterAll(() => all?.close(), 60_000);
  beforeEach(async () => {
    // The device that reads all histories at the end does so within a burst.
    const tenant = await all.tenant({ frames_burst: 10_000 });
    const [edges, sessions] = [alive(all.edges), alive(all.sessions)];
    const agent = tenant.agent({ edge: indexOf(edges[1]) });
    await agent.connect();
    const a = await tenant.join('phone', { edge: indexOf(edges[0]), caps: { cursors: true } });
    const b = await tenant.join('tablet', { edge: indexOf(edges[1]), caps: { cursors: true } });
    await Promise.all([a.sync(), b.sync()]);
    const attached = [keepDevice(all, tenant, a), keepDevice(all, tenant, b), keepAgent(all, tenant, agent)];
    scene = { tenant, edges, sessions, a, b, agent, acknowledged: [], attached };
  });
  afterEach(() => {
    for (const one of scene?.attached ?? []) one.end();
    for (const device of [scene?.a, scene?.b]) device?.close();
    scene?.agent.close();
  });
}

const alive = <P extends ClusterPart>(parts: readonly P[]) => parts.filter((part) => part.alive);
const indexOf = (edge: ClusterEdge | undefined) => all.edges.indexOf(edge!);

export const back = (device: TestDevice) =>
  all.patience.wait(() => (device.connected && device.connections.at(-1)?.synced !== undefined) || undefined, {
    describe: () => `${device.device_id} does not come back`,
  });
export const gets = (device: TestDevice, text: string) =>
  all.patience.wait(() => device.frames(({ payload }) => (payload.final_text ?? payload.text) === text)[0], {
    describe: () => `${device.device_id} does not get "${text.slice(0, 40)}"`,
  });

/** As an app does it: the same `client_ref` until it is answered. */
export async function sendUntilAnswered(device: TestDevice, text: string): Promise<void> {
  const give_up = Date.now() + 45_000;
  for (;;) {
    const answer = await device.send(text, { client_ref: text, within_ms: 15_000 }).catch(() => undefined);
    if (answer?.type === 'message') return void scene.acknowledged.push(text);
    if (Date.now() > give_up) throw new Error(`"${text}" is not answered: ${JSON.stringify(answer?.payload)}`);
    await back(device);
  }
}

/** Service is back when a send through each edge is answered, seen on both devices, and handed to the agent. */
export async function serves(within_ms: number): Promise<void> {
  const { a, b, agent } = scene;
  const start = Date.now();
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    const text = `still served ${from.device_id}`;
    await sendUntilAnswered(from, text);
    await gets(to, text);
    const turn = await agent.turn();
    expect(turn.text).toBe(text);
    turn.end();
  }
  expect(Date.now() - start).toBeLessThan(within_ms);
}

/** Nothing acknowledged is lost, nothing is shown twice, cursors never step back, every turn has ended. */
export async function allIsWell(lossy: boolean): Promise<void> {
  const { tenant, a, b, agent } = scene;
  await all.patience.wait(() => agent.unacked.length === 0 || undefined, { describe: () => 'the agent has unacked frames' });
  for (const device of [a, b]) {
    await back(device);
    const idles = () => device.frames(['agent.busy', 'agent.idle']).at(-1)?.type === 'agent.idle';
    await all.patience.wait(() => idles() || undefined, { describe: () => `${device.device_id} still sees a busy agent` });
  }
  const evidence = await tenant.evidence({ lossy });
  expectChecks(evidence);
  const texts = new Set([...evidence.histories.values()].flat().map(({ text }) => text));
  for (const text of scene.acknowledged) expect(texts).toContain(text);
}
