import { stream, type TestDevice, type TestTurn, turnStorm } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';
import { all, allIsWell, back, gets, playScenes, scene, sendUntilAnswered, serves } from './scene.js';

playScenes();

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
    'O1 O2 O3 O4 O5 O10 ENV24 C64 C75: %s; what comes back cannot act with old authority',
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
