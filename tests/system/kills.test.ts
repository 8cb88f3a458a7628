import {
  type Attached,
  type Cluster,
  type ClusterTenant,
  cluster,
  expectChecks,
  keepAgent,
  keepDevice,
  stream,
  type TestAgent,
  type TestDevice,
} from '@iris/testkit';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

/** A streaming turn with two devices, one on each edge, all of whom come back by themselves. */
interface Scene {
  readonly all: Cluster;
  readonly tenant: ClusterTenant;
  readonly a: TestDevice;
  readonly b: TestDevice;
  readonly agent: TestAgent;
  /** Sends that were acknowledged. */
  readonly acknowledged: string[];
  attached: Attached[];
}
let scene: Scene;

beforeEach(async () => {
  const all = await cluster();
  const tenant = await all.tenant();
  const agent = tenant.agent({ edge: 1 });
  await agent.connect();
  const a = await tenant.join('phone', { edge: 0, caps: { cursors: true } });
  const b = await tenant.join('tablet', { edge: 1, caps: { cursors: true } });
  await Promise.all([a.sync(), b.sync()]);
  const attached = [keepDevice(all, tenant, a), keepDevice(all, tenant, b), keepAgent(all, tenant, agent)];
  scene = { all, tenant, a, b, agent, acknowledged: [], attached };
}, 120_000);
afterEach(async () => {
  for (const one of scene?.attached ?? []) one.end();
  await scene?.all.close();
}, 60_000);

/** As an app does it: the same `client_ref` until it is answered. */
async function sendUntilAnswered(device: TestDevice, text: string): Promise<void> {
  const give_up = Date.now() + 45_000;
  for (;;) {
    try {
      const answer = await device.send(text, { client_ref: text, within_ms: 15_000 });
      if (answer.type === 'message') {
        scene.acknowledged.push(text);
        return;
      }
    } catch (error) {
      if (Date.now() > give_up) throw error;
    }
    if (Date.now() > give_up) throw new Error(`"${text}" is not answered`);
    await scene.all.patience.wait(() => (device.connected && device.connections.at(-1)?.synced !== undefined) || undefined, {
      describe: () => `${device.device_id} does not come back`,
    });
  }
}

/** Service is back when a send through each edge is answered and seen on both devices. */
async function serves(within_ms: number): Promise<void> {
  const { a, b } = scene;
  const start = Date.now();
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    const text = `still served ${from.device_id} ${start}`;
    await sendUntilAnswered(from, text);
    await scene.all.patience.wait(() => to.frames((frame) => frame.payload.text === text)[0], {
      describe: () => `${to.device_id} does not get "${text}"`,
    });
  }
  expect(Date.now() - start).toBeLessThan(within_ms);
}

/** Nothing acknowledged is lost, nothing is shown twice, cursors never step back, the turn has ended. */
async function allIsWell(lossy: boolean): Promise<void> {
  const { tenant, a, b, all } = scene;
  for (const device of [a, b]) {
    await all.patience.wait(() => (device.connected && device.connections.at(-1)?.ack !== undefined) || undefined, {
      describe: () => 'not connected',
    });
    await device.sync(0);
  }
  const evidence = await tenant.evidence({ lossy });
  expectChecks(evidence);
  const texts = new Set([...evidence.histories.values()].flat().map(({ text }) => text));
  for (const text of scene.acknowledged) expect(texts).toContain(text);
}

interface Blow {
  readonly name: string;
  readonly lossy: boolean;
  strike(): Promise<void>;
  mend(): Promise<void>;
}
const blows: Blow[] = [
  {
    name: 'the edge of a device',
    lossy: false,
    strike: () => scene.all.edges[0]!.kill(),
    mend: async () => void (await scene.all.startEdge()),
  },
  {
    name: 'the edge of the agent',
    lossy: false,
    strike: () => scene.all.edges[1]!.kill(),
    mend: async () => void (await scene.all.startEdge()),
  },
  {
    name: 'one session instance',
    lossy: false,
    strike: () => scene.all.sessions[0]!.kill(),
    mend: async () => void (await scene.all.startSession()),
  },
  {
    name: 'the other session instance',
    lossy: false,
    strike: () => scene.all.sessions[1]!.kill(),
    mend: async () => void (await scene.all.startSession()),
  },
  { name: 'Redis, which comes back empty', lossy: true, strike: () => scene.all.redis.kill(), mend: () => scene.all.redis.start() },
  { name: 'NATS', lossy: false, strike: () => scene.all.nats.kill(), mend: () => scene.all.nats.start() },
];

describe('kill -9 in the middle of a streaming turn with two devices', () => {
  test.each(blows.map((blow) => [blow.name, blow] as const))(
    'O1 O2 O3 O4 O5 O6 O10 ENV24 OUT13 LNK31 TRN3: %s',
    async (_, { strike, mend, lossy }) => {
      const { a, b, agent, all } = scene;
      await sendUntilAnswered(a, 'tell me a story');
      const turn = await agent.turn();
      const story = stream(turn);
      await Promise.all([a.next('message.update'), b.next('message.update')]);

      const during = sendUntilAnswered(b, 'sent while it happens');
      await strike();
      await Promise.all([mend(), during]);
      const struck = Date.now();
      const words = story.words;
      await all.patience.wait(() => story.words > words + 20 || undefined, { describe: () => 'the agent stands still' });
      const text = story.finish();
      for (const device of [a, b])
        await all.patience.wait(() => device.frames((frame) => (frame.payload.final_text ?? frame.payload.text) === text)[0] ?? undefined, {
          within_ms: 45_000,
          describe: () => `${device.device_id} does not get the end of the answer`,
        });
      // The message sent meanwhile is the lane's next turn.
      const next = await agent.turn({ within_ms: 45_000 });
      expect(next.text).toBe('sent while it happens');
      next.message('and this is the next answer');
      next.end();
      for (const device of [a, b])
        await all.patience.wait(() => device.frames((frame) => frame.payload.text === 'and this is the next answer')[0], {
          within_ms: 45_000,
          describe: () => `${device.device_id} does not get the next answer`,
        });
      await serves(30_000);
      for (const turn of agent.turns.values()) if (turn.state === 'offered') turn.accept();
      for (let waiting = 0; waiting < 4; waiting++) {
        const more = await agent.turn({ within_ms: 3_000 }).catch(() => undefined);
        more?.end();
      }
      expect(Date.now() - struck).toBeLessThan(90_000);
      await all.patience.wait(() => agent.unacked.length === 0 || undefined, { describe: () => `the agent has unacked frames` });
      await allIsWell(lossy);
    },
    180_000,
  );
});

describe('frozen for 8 seconds and thawed', () => {
  const freezing = [
    ['one session instance', () => scene.all.sessions[0]!],
    ['the other session instance', () => scene.all.sessions[1]!],
    ['Redis', () => scene.all.redis],
  ] as const;
  test.each(freezing)(
    'O1 O2 O3 O4 O5 O10 ENV24: %s; what comes back cannot act with old authority',
    async (_, which) => {
      const { a, b, agent, all } = scene;
      await sendUntilAnswered(a, 'tell me a story');
      const turn = await agent.turn();
      const story = stream(turn);
      await Promise.all([a.next('message.update'), b.next('message.update')]);
      const frozen = which();
      frozen.freeze();
      const thawed = new Promise<void>((resolve) => {
        // The length of the freeze is the case itself.
        setTimeout(() => {
          frozen.thaw();
          resolve();
        }, 8_000);
      });
      await sendUntilAnswered(b, 'sent meanwhile');
      await thawed;
      const text = story.finish();
      for (const device of [a, b])
        await all.patience.wait(() => device.frames((frame) => (frame.payload.final_text ?? frame.payload.text) === text)[0], {
          within_ms: 45_000,
          describe: () => `${device.device_id} does not get the end of the answer`,
        });
      const next = await agent.turn({ within_ms: 45_000 });
      expect(next.text).toBe('sent meanwhile');
      next.end();
      await serves(30_000);
      for (let waiting = 0; waiting < 4; waiting++) {
        const more = await agent.turn({ within_ms: 3_000 }).catch(() => undefined);
        more?.end();
      }
      await all.patience.wait(() => agent.unacked.length === 0 || undefined, { describe: () => `the agent has unacked frames` });
      await allIsWell(false);
    },
    180_000,
  );
});
