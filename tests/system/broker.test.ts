import type { ClusterPart, TestDevice } from '@iris/testkit';
import { expect, test } from '@jest/globals';
import { all, allIsWell, gets, playScenes, scene, sendUntilAnswered, serves } from './scene.js';

playScenes();

const slowConsumers = async ({ metrics_url }: ClusterPart): Promise<number> =>
  (await (await fetch(metrics_url)).text())
    .split('\n')
    .filter((line) => line.startsWith('iris_bus_slow_consumer_total'))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);

test('C47 O1 O2 O3 O4 O6: an edge stands still for 10 s while a thousand frames a second go by: its device gets each of them, and the metric says that it was slow', async () => {
  const { a, b, agent, edges } = scene;
  const [slow, quick] = [edges[0]!, edges[1]!];
  await sendUntilAnswered(b, 'work hard');
  const turn = await agent.turn();
  await b.next('agent.busy');
  const before = await slowConsumers(slow);
  slow.freeze();
  let tools = 0;
  await new Promise<void>((resolve) => {
    // The length of the freeze, and what is said a second, are the case itself.
    const until = Date.now() + 10_000;
    const timer = setInterval(() => {
      for (let n = 0; n < 10; n++) {
        turn.toolStart(tools, 'terminal', { preview: `step ${tools}` });
        turn.toolEnd(tools++, { output_preview: 'done' });
      }
      if (Date.now() < until) return;
      clearInterval(timer);
      resolve();
    }, 20);
  });
  slow.thaw();
  turn.message('all of it is done');
  turn.end();
  for (const device of [a, b]) {
    await gets(device, 'all of it is done');
    for (const type of ['tool.start', 'tool.end']) {
      const got = new Set(device.frames(type).map(({ payload }) => payload.index));
      expect([device.device_id, type, got.size]).toEqual([device.device_id, type, tools]);
    }
  }
  expect(tools).toBeGreaterThan(1_000);
  expect(await slowConsumers(slow)).toBeGreaterThan(before);
  // The connection of the other one was never behind.
  expect(quick.alive).toBe(true);
  await serves(30_000);
  await allIsWell(false);
}, 180_000);

test('C61 O1 O2: a thousand sends are answered and the broker loses all that it held: each is in history, and reaches the agent once', async () => {
  const { a, b, agent, tenant } = scene;
  const [channels, each] = [20, 50];
  const others = await Promise.all(['watch', 'desk'].map((name, n) => tenant.join(name, { edge: n })));
  const lanes = await Promise.all(
    Array.from({ length: channels }, async (_, n) => (await a.request('channel.create', { name: `Channel ${n}` })).payload.chat_id!),
  );
  const devices: TestDevice[] = [a, b, ...others];
  const asked = lanes.flatMap((chat_id, lane) =>
    Array.from({ length: each }, (_, n) => devices[lane % devices.length]!.send(`${lane}: ${n}`, { chat_id, within_ms: 60_000 })),
  );
  // The broker goes while many of them wait for their turn: the agent takes none before.
  const answers = await Promise.all(asked);
  expect(answers.map(({ type }) => type)).toEqual(answers.map(() => 'message'));
  await all.nats.kill();
  await all.nats.start();
  const wanted = answers.map(({ payload }) => payload.text!);
  const taken = new Map<string, number>();
  while (taken.size < wanted.length) {
    const turn = await agent.turn({ within_ms: 60_000 });
    taken.set(turn.text, (taken.get(turn.text) ?? 0) + 1);
    turn.message(`answer to ${turn.text}`);
    turn.end();
  }
  expect([...taken.keys()].sort()).toEqual([...wanted].sort());
  expect([...taken.values()].filter((times) => times !== 1)).toEqual([]);
  for (const [lane, chat_id] of lanes.entries()) {
    const rows = (await b.historyAll({ chat_id, thread_id: null }, 200)) as { role: string; text: string }[];
    const said = rows.filter(({ role }) => role === 'user').map(({ text }) => text);
    expect(said).toEqual(Array.from({ length: each }, (_, n) => `${lane}: ${n}`));
  }
  await serves(30_000);
  await allIsWell(false);
  for (const other of others) other.close();
}, 240_000);

test('ENV22 MSG12 O1 O2 C63: the broker dies under load, with all it held: what was answered is in history and reached the agent, once, and nothing stands still for 10 s', async () => {
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
