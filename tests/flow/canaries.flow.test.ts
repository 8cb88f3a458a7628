import { type App, app, expectChecks, makeWorld, type TestAgent, type TestTurn, type World } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

/**
 * Tenants in which everything is named alike: devices, channels, the agents' installations and messages, the apps' references. Only the
 * canary words differ, one for each tenant and channel, so that whatever crosses over is seen.
 */
interface House {
  readonly word: string;
  readonly apps: readonly App[];
  readonly agent: TestAgent;
  readonly chats: readonly string[];
  readonly tenant: Awaited<ReturnType<World['tenant']>>;
}

/** One, and more by `IRIS_SEEDS`. */
const seeds = Array.from({ length: Math.ceil(Number(process.env.IRIS_SEEDS ?? 0) / 100) || 1 }, (_, i) => [i + 1]);
const canary = (word: string, chat: string) => `${word}-${chat.replace('android:', '')}`;
const canaries = /\b(?:alpha|beta)-(?:default|chan_\d+)\b/g;

async function house(world: World, word: string, channels: number): Promise<House> {
  const dice = world.chance.fork(word);
  const clock = world.clock(word);
  const tenant = await world.tenant();
  const chats = ['android:default'];
  for (let n = 0; n < channels; n++) {
    const made = await world.store.channels.create({
      tenant_id: tenant.tenant_id,
      name: `channel ${n}`,
      auto: false,
      idempotency_key: `${n}`,
      max: 100,
      at: world.time.now(),
    });
    if (typeof made === 'string') throw new Error(made);
    chats.push(made.row.chat_id);
  }
  const open = () => dice.pick(world.edges.filter(({ alive }) => alive)).links;
  const answer = (turn: TestTurn) => {
    const mark = canary(word, turn.chat_id);
    const pause = (run: () => void) => void clock.after(dice.between(0, 120), run);
    turn.accept();
    const id = turn.start('a1');
    turn.toolStart(0, 'terminal', { preview: mark });
    pause(() => {
      turn.delta(`${mark} says `, id);
      turn.toolEnd(0, { output_preview: mark });
      pause(() => {
        turn.delta(`to "${turn.text}"`, id);
        turn.stop({ message_id: id });
        turn.end();
      });
    });
  };
  const agent = tenant.agent({ script: answer, install_id: 'the same' });
  const connect = (): void =>
    void agent
      .connect(open().dial('/agent', { token: tenant.agent_token }))
      .then(() => agent.closed({ within_ms: 10 ** 9 }).then(again, () => {}), again);
  const again = () => void clock.after(dice.between(50, 300), connect);
  connect();
  const apps = ['phone', 'tablet'].map((name, i) =>
    app({
      device: tenant.device(name, { caps: { cursors: i === 0, delta: i === 0 } }),
      clock,
      chance: dice.fork(name),
      dial: () => open().dial('/ws'),
      retry_ms: [50, 300],
      own_cursor: i === 0,
    }),
  );
  for (const one of apps) one.come();
  return { word, apps, agent, chats, tenant };
}

describe('HEL7 C122: two tenants with everything named alike, 200 turns at once, instances killed', () => {
  test.each(seeds)('no canary crosses to another tenant or channel (seed %i)', async (seed) => {
    const world = await makeWorld({ seed, shuffle: true, held: true, edges: 2, sessions: 3 });
    const dice = world.chance.fork('kills');
    const houses = [await house(world, 'alpha', 9), await house(world, 'beta', 9)];
    await world.advance(500);
    let sent = 0;
    for (let round = 0; round < 10; round++) {
      for (const { word, apps, chats } of houses)
        for (const chat of chats) {
          apps[sent++ % 2]!.send(`${canary(word, chat)} question ${round}`, { chat_id: chat, thread_id: null });
        }
      await world.advance(dice.between(50, 400));
      const victims = dice.happens(0.5) ? world.sessions : world.edges;
      dice.pick(victims.filter(({ alive }) => alive)).kill();
      await world.advance(dice.between(0, 200));
      await (victims === world.sessions ? started(world, world.startSession()) : started(world, world.startEdge()));
    }
    expect(sent).toBe(200);
    const settled = () => houses.every(({ apps, agent }) => apps.every(({ owed }) => owed === 0) && agent.unacked.length === 0);
    for (let tries = 0; tries < 120 && !(settled() && houses.every(({ agent }) => agent.turns.size >= 100)); tries++)
      await world.advance(1_000);
    await world.advance(40_000);

    for (const { word, apps, agent, chats, tenant } of houses) {
      expect([word, apps.map(({ owed, online }) => [owed, online])]).toEqual([
        word,
        [
          [0, true],
          [0, true],
        ],
      ]);
      const texts = [...agent.turns.values()].map(({ text }) => text);
      for (const chat of chats) for (let round = 0; round < 10; round++) expect(texts).toContain(`${canary(word, chat)} question ${round}`);
      for (const { chat_id, text } of agent.turns.values())
        expect([...text.matchAll(canaries)].map(([one]) => one)).toEqual([canary(word, chat_id)]);
      // Every word that was heard belongs to the channel that it was heard in.
      for (const { device } of apps)
        for (const { frame } of device.received.all)
          for (const [mark] of JSON.stringify(frame).matchAll(canaries))
            expect([frame.type, mark]).toEqual([frame.type, canary(word, frame.chat_id!)]);
      const evidence = await inTime(world, tenant.evidence({ lossy: true }));
      expectChecks(evidence);
      for (const [chat, messages] of evidence.histories)
        for (const [mark] of JSON.stringify(messages).matchAll(canaries)) expect(mark).toBe(canary(word, chat.split('\n')[0]!));
      expect([...evidence.histories.values()].flat().filter(({ role }) => role === 'user')).toHaveLength(100);
    }
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  });
});

/** Held time does not pass by waiting. */
async function inTime<T>(world: World, promise: Promise<T>): Promise<T> {
  let done = false;
  const settle = () => {
    done = true;
  };
  promise.then(settle, settle);
  for (let n = 0; n < 2_000 && !done; n++) await world.advance(10);
  return promise;
}
const started = (world: World, starting: Promise<unknown>) => inTime(world, starting);
