import { runAgent, type Spool, type SpoolState } from '@iris/agent-link';
import { type AgentProcess, agentProcess, chance, makeWorld } from '@iris/testkit';
import { expect, test } from '@jest/globals';

/** `IRIS_SDK_SEED=7` plays one again; `IRIS_SDK_SEEDS=500` plays many. */
const one = process.env.IRIS_SDK_SEED;
const seeds = one === undefined ? Array.from({ length: Number(process.env.IRIS_SDK_SEEDS ?? 8) }, (_, i) => i + 1) : [Number(one)];

const fresh = (): SpoolState => ({
  install_id: 'in_test',
  next_seq: 1,
  acked: 0,
  in_seq: 0,
  unacked: [],
  turns: new Map(),
  ended: new Set(),
});
const spoolOf = (state: SpoolState): Spool => ({ state: structuredClone(state), append: () => undefined, close: async () => {} });

test.each(seeds)(
  'LNK7 LNK26 LNK32 LNK34: seed %i: edges, sessions and the agent die at any moment; each turn is run at most once and ends once, with the whole answer unless its agent died',
  async (seed) => {
    const dice = chance(seed);
    const world = await makeWorld({
      seed,
      shuffle: true,
      faults: {
        bus_drop: dice.happens(0.5) ? 0.03 : 0,
        bus_repeat: 0.02,
        bus_reorder: 0.02,
        bus_ms: [0, 5],
        store_ms: [0, 5],
        outbox_ms: [0, 3],
        socket_ms: [0, 10],
      },
    });
    const tenant = await world.tenant();
    const acts: string[] = [];
    const note = (text: string) => void acts.push(`${String(world.time.now() - start).padStart(6)} ${text}`);
    const start = world.time.now();
    const runs = new Map<string, number>();
    const killedWith = new Set<string>();
    const running = new Set<string>();
    let spool = spoolOf(fresh());
    let alive: AgentProcess;
    let lives = 0;
    const live = () => {
      // The device's edge is the one that stays.
      const open = () => dice.pick(world.edges.flatMap((edge, i) => (edge.alive ? [i] : [])));
      alive = agentProcess(world, `agent-${++lives}`, open);
      const { clock, connect } = alive;
      runAgent({
        gateway: 'ws://world/agent',
        token: tenant.agent_token,
        name: 'test',
        spool,
        log: { debug() {}, info: note, warn: note, error: note },
        clock,
        random: dice.fork(`agent ${lives}`).unit,
        connect,
        async onTurn(turn) {
          const { text } = turn.message;
          note(`run ${text} ${turn.turn_id} attempt ${turn.attempt}`);
          runs.set(text, (runs.get(text) ?? 0) + 1);
          running.add(text);
          for (let i = 1; i <= 20; i++) {
            turn.write(`${text}.${i} `);
            if (i === 10) turn.tool('half').end();
            await new Promise<void>((resolve) => void clock.after(15, resolve));
          }
          running.delete(text);
        },
      });
    };
    live();
    const device = await tenant.join('phone', { edge: 0, caps: { cursors: true } });

    const texts: string[] = [];
    for (let n = 0; n < 8; n++) {
      const text = `turn${n}`;
      texts.push(text);
      expect((await device.send(text, { within_ms: 60_000 })).type).toBe('message');
      await world.advance(dice.between(0, 400));
      const harm = dice.pick(['edge', 'session', 'agent', 'bus', 'nothing'] as const);
      note(`sent ${text}, now ${harm}`);
      switch (harm) {
        case 'edge':
          world.edges.findLast(({ alive }, i) => alive && i > 0)?.kill();
          await world.startEdge();
          break;
        case 'session':
          world.sessions.find(({ alive }) => alive)?.kill();
          await world.startSession();
          break;
        case 'agent': {
          alive!.kill();
          for (const text of running) killedWith.add(text);
          running.clear();
          const { state } = spool;
          spool = spoolOf(state);
          await world.advance(dice.between(0, 3_000));
          live();
          break;
        }
        case 'bus':
          world.loseBus(dice.between(100, 3_000));
          break;
        default:
          break;
      }
      await world.advance(dice.between(0, 600));
    }
    await world.advance(120_000);

    try {
      for (const text of texts) expect([text, runs.get(text)]).toEqual([text, 1]);
      const history = await device.historyAll({ chat_id: 'android:default', thread_id: null });
      for (const text of texts) {
        const answers = history.filter(({ role, text: said }) => role === 'assistant' && String(said).startsWith(`${text}.`));
        const whole = Array.from({ length: 20 }, (_, i) => `${text}.${i + 1} `).join('');
        // A turn whose agent died before a word of it was heard has none.
        if (killedWith.has(text)) expect(answers.length).toBeLessThanOrEqual(1);
        else expect(answers).toMatchObject([{ text: whole }]);
        for (const answer of answers) if (answer.text !== whole) expect(answer.interrupted).toBe(true);
      }
      expect(device.frames('agent.idle')).toHaveLength(texts.length);
      expect(device.faults).toEqual([]);
    } catch (error) {
      (error as Error).message += `\n\n${acts.join('\n')}${world.events.tail()}`;
      throw error;
    }
    for (const member of [...world.edges, ...world.sessions]) member.kill();
  },
);
