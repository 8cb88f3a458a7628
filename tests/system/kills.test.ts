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
  stream,
  type TestAgent,
  type TestDevice,
  type TestTurn,
  turnStorm,
} from '@iris/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

/** One cluster for all: each test leaves it whole again, and its own tenant behind. */
let all: Cluster;
beforeAll(async () => {
  all = await cluster();
}, 120_000);
afterAll(() => all?.close(), 60_000);

/** A conversation with two devices, one on each edge, all of whom come back by themselves. */
interface Scene {
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
let scene: Scene;

const alive = <P extends ClusterPart>(parts: readonly P[]) => parts.filter((part) => part.alive);
const indexOf = (edge: ClusterEdge | undefined) => all.edges.indexOf(edge!);

beforeEach(async () => {
  const tenant = await all.tenant();
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

const back = (device: TestDevice) =>
  all.patience.wait(() => (device.connected && device.connections.at(-1)?.synced !== undefined) || undefined, {
    describe: () => `${device.device_id} does not come back`,
  });
const gets = (device: TestDevice, text: string) =>
  all.patience.wait(() => device.frames(({ payload }) => (payload.final_text ?? payload.text) === text)[0], {
    describe: () => `${device.device_id} does not get "${text.slice(0, 40)}"`,
  });

/** As an app does it: the same `client_ref` until it is answered. */
async function sendUntilAnswered(device: TestDevice, text: string): Promise<void> {
  const give_up = Date.now() + 45_000;
  for (;;) {
    const answer = await device.send(text, { client_ref: text, within_ms: 15_000 }).catch(() => undefined);
    if (answer?.type === 'message') return void scene.acknowledged.push(text);
    if (Date.now() > give_up) throw new Error(`"${text}" is not answered: ${JSON.stringify(answer?.payload)}`);
    await back(device);
  }
}

/** Service is back when a send through each edge is answered, seen on both devices, and handed to the agent. */
async function serves(within_ms: number): Promise<void> {
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
async function allIsWell(lossy: boolean): Promise<void> {
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

/** A turn that streams to both devices. */
async function streaming(): Promise<{ turn: TestTurn; story: ReturnType<typeof stream> }> {
  const { a, b, agent } = scene;
  await sendUntilAnswered(a, 'tell me a story');
  const turn = await agent.turn();
  const story = stream(turn);
  await Promise.all([a.next('message.update'), b.next('message.update')]);
  return { turn, story };
}

/** The streamed answer ends on both, then comes the turn of what was sent meanwhile, and then service as ever. */
async function ends(story: ReturnType<typeof stream>, meanwhile: string, lossy: boolean): Promise<void> {
  const { a, b, agent } = scene;
  const text = story.finish();
  for (const device of [a, b]) await gets(device, text);
  const next = await agent.turn();
  expect(next.text).toBe(meanwhile);
  next.message('and this is the next answer');
  next.end();
  for (const device of [a, b]) await gets(device, 'and this is the next answer');
  await serves(30_000);
  await allIsWell(lossy);
}

interface Blow {
  readonly name: string;
  readonly lossy: boolean;
  strike(): Promise<void>;
  mend(): Promise<unknown>;
}
const blows: Blow[] = [
  { name: 'the edge of a device', lossy: false, strike: () => scene.edges[0]!.kill(), mend: () => all.startEdge() },
  { name: 'the edge of the other device and the agent', lossy: false, strike: () => scene.edges[1]!.kill(), mend: () => all.startEdge() },
  { name: 'one session instance', lossy: false, strike: () => scene.sessions[0]!.kill(), mend: () => all.startSession() },
  { name: 'the other session instance', lossy: false, strike: () => scene.sessions[1]!.kill(), mend: () => all.startSession() },
  { name: 'Redis, which comes back empty', lossy: true, strike: () => all.redis.kill(), mend: () => all.redis.start() },
  { name: 'NATS', lossy: false, strike: () => all.nats.kill(), mend: () => all.nats.start() },
];

describe('kill -9 in the middle of a streaming turn with two devices', () => {
  test.each(blows.map((blow) => [blow.name, blow] as const))(
    'O1 O2 O3 O4 O5 O6 O10 ENV24 OUT13 LNK31 TRN3 C60 C77: %s',
    async (_, { strike, mend, lossy }) => {
      const { b } = scene;
      const { story } = await streaming();
      const during = sendUntilAnswered(b, 'sent while it happens');
      const struck = Date.now();
      await strike();
      await Promise.all([mend(), during]);
      expect(Date.now() - struck).toBeLessThan(30_000);
      await ends(story, 'sent while it happens', lossy);
    },
    180_000,
  );
});

describe('frozen for 6 seconds and thawed', () => {
  const freezing = [
    ['one session instance', () => scene.sessions[0]!],
    ['the other session instance', () => scene.sessions[1]!],
    ['the edge of a device', () => scene.edges[0]!],
    ['Redis', () => all.redis],
  ] as const;
  test.each(freezing)(
    'O1 O2 O3 O4 O5 O10 ENV24 C47 C64 C75: %s; what comes back cannot act with old authority',
    async (_, which) => {
      const { b } = scene;
      const { story } = await streaming();
      const frozen = which();
      frozen.freeze();
      const thawed = new Promise<void>((resolve) => {
        // The length of the freeze is the case itself.
        setTimeout(() => {
          frozen.thaw();
          resolve();
        }, 6_000);
      });
      await sendUntilAnswered(b, 'sent meanwhile');
      await thawed;
      await ends(story, 'sent meanwhile', false);
    },
    180_000,
  );
});

test('ENV22 MSG12 O1 O2 C61 C63: the broker dies under load, with all it held: what was answered is in history and reached the agent, once, and nothing stands still for 10 s', async () => {
  const { a, b, agent, acknowledged } = scene;
  let rolled = false;
  let [longest, last] = [0, Date.now()];
  const talk = async (device: TestDevice) => {
    for (let n = 0; n < 10 || !rolled; n++) {
      const text = `${device.device_id} says ${n}`;
      await sendUntilAnswered(device, text);
      longest = Math.max(longest, Date.now() - last);
      last = Date.now();
      // One at a time, as people do.
      await gets(device, `answer to ${text}`);
    }
  };
  const talking = [talk(a), talk(b)];
  let talked = false;
  const answering = (async () => {
    while (!talked) {
      const turn = await agent.turn({ within_ms: 1_000 }).catch(() => undefined);
      turn?.message(`answer to ${turn.text}`);
      turn?.end();
    }
  })();
  const count = () => acknowledged.length;
  await all.patience.wait(() => count() > 10 || undefined, { describe: () => 'nothing is answered' });
  const before = count();
  await all.nats.kill();
  await all.nats.start();
  await all.patience.wait(() => count() > before + 6 || undefined, { describe: () => 'nothing is answered any more' });
  rolled = true;
  await Promise.all(talking);
  talked = true;
  await answering;
  expect(longest).toBeLessThan(10_000);
  const offered = agent.received.all.filter(({ type }) => type === 'turn.start').map(({ turn_id }) => turn_id);
  expect(new Set(offered).size).toBe(acknowledged.length);
  expect([...agent.turns.values()].map(({ text }) => text).sort()).toEqual([...acknowledged].sort());
  await allIsWell(false);
}, 120_000);

test('C37 PIC8 PIC12: an approval is open while every session instance is killed: it stands, is answered once through either edge, and the turn goes on', async () => {
  const { a, b, agent } = scene;
  await sendUntilAnswered(a, 'may I?');
  const turn = await agent.turn();
  const own_id = turn.picker('approval', {
    title: 'Run it?',
    command: 'ls',
    choices: ['once', 'deny'].map((value) => ({ value, label: value })),
  });
  turn.busy('waiting_input');
  const { picker_id } = (await b.next('picker.approval')).payload;
  await Promise.all(scene.sessions.map((session) => session.kill()));
  await Promise.all([all.startSession(), all.startSession()]);
  // Both answer: one of them is heard. Who is not told within its time asks again.
  const answer = async (device: TestDevice) => {
    for (;;) {
      const said = await device
        .request('picker.select', { picker_id: picker_id!, value: 'once' }, { within_ms: 15_000 })
        .catch(() => undefined);
      if (said !== undefined && said.payload.code !== 'internal') return said.payload.code ?? said.type;
      await back(device);
    }
  };
  const said = await Promise.all([answer(a), answer(b)]);
  expect(said).toContain('ack');
  expect((await agent.next('picker.select')).payload).toMatchObject({ picker_id: own_id, value: 'once' });
  turn.busy('processing');
  turn.message('done');
  turn.end();
  for (const device of [a, b]) await gets(device, 'done');
  expect(agent.received.all.filter(({ type }) => type === 'picker.select')).toHaveLength(1);
  await serves(30_000);
  await allIsWell(false);
}, 180_000);

test('O1 O2 O3 O4 O5 O10 LNK26 LNK27 LNK34: turns while agent, edges and session instances are killed at random moments; each ends once', async () => {
  const report = await turnStorm(all, { turns: 18, lanes: 6, every_ms: [300, 700], seed: 11 });
  expect(report.completed + report.interrupted).toBe(18);
  expect(report.kills.agent + report.kills.edge + report.kills.session).toBeGreaterThan(2);
}, 180_000);
