import { manualClock, seededRandom } from '@iris/runtime/testing';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { runAgent } from './agent.js';
import type { Agent } from './agent-options.js';
import { applyRecord, emptyState, type Spool, type SpoolRecord, type SpoolState } from './spool.js';
import { type Processed, type ScriptedGateway, scriptedGateway } from './testing.js';
import type { Turn } from './types.js';

/** What a turn of the test does, one after the other. */
type Step =
  | { readonly do: 'write' | 'reason' | 'replace' | 'say' | 'commentary'; readonly text: string }
  | { readonly do: 'tool' | 'notify' | 'close' | 'beside' | 'history' | 'wait' }
  | { readonly do: 'ask'; readonly answer: string };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('write' as const), text: fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('reason' as const, 'replace' as const), text: fc.string({ maxLength: 20 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('say' as const, 'commentary' as const), text: fc.string({ minLength: 1, maxLength: 20 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('tool' as const, 'notify' as const, 'close' as const, 'beside' as const, 'history' as const, 'wait' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('ask' as const), answer: fc.constantFrom('a', 'b') }) },
);

interface Plan {
  readonly turns: readonly { readonly steps: readonly Step[]; readonly steer: boolean; readonly stop: boolean }[];
  /** After so many more delivered frames each, the line is cut, with what is under way in both directions. */
  readonly cuts: readonly number[];
  readonly seed: number;
}
/** Quick by default; `IRIS_PROPERTY_RUNS=5000` for a night. */
const numRuns = Number(process.env.IRIS_PROPERTY_RUNS ?? 100);
const timeout_ms = 30_000 + 200 * numRuns;

const plan: fc.Arbitrary<Plan> = fc.record({
  turns: fc.array(
    fc.record({
      steps: fc.array(step, { maxLength: 10 }),
      steer: fc.boolean(),
      stop: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  cuts: fc.array(fc.integer({ min: 1, max: 25 }), { maxLength: 12 }),
  seed: fc.integer(),
});

/** What the agent meant to say, in order, and how often what came to it was acted upon. */
interface Record_ {
  readonly said: SpoolRecord[];
  readonly begun: Map<string, number>;
  readonly steered: Map<string, number>;
  readonly answers: Map<string, string[]>;
}

async function act(turn: Turn, steps: readonly Step[], wait: () => Promise<void>, record: Record_): Promise<void> {
  turn.onSteer((text) => {
    record.steered.set(text, (record.steered.get(text) ?? 0) + 1);
    return true;
  });
  for (const one of steps) {
    switch (one.do) {
      case 'write':
      case 'reason':
      case 'commentary':
        turn[one.do](one.text);
        break;
      case 'say':
        turn.say(one.text);
        break;
      case 'replace': {
        const stream = turn.stream();
        stream.write(one.text);
        stream.replace(`${one.text}!`);
        break;
      }
      case 'tool': {
        const tool = turn.tool('tool', { args: { n: 1 } });
        tool.progress('half');
        await wait();
        tool.end({ output_preview: 'out' });
        break;
      }
      case 'notify':
        turn.notify({ title: 't', body: 'b' });
        break;
      case 'close':
        turn.stop();
        break;
      case 'beside':
        turn.stream({ role: 'system' }).write('beside');
        break;
      case 'history':
        await turn.history({ limit: 1 }).catch(() => {});
        break;
      case 'wait':
        await wait();
        break;
      case 'ask': {
        const { value, reason } = await turn.ask.choice({
          title: one.answer,
          choices: [
            { value: 'a', label: 'A' },
            { value: 'b', label: 'B' },
          ],
        });
        record.answers.set(turn.turn_id, [...(record.answers.get(turn.turn_id) ?? []), value ?? reason]);
      }
    }
  }
}

/** A disk that forgets, at a crash, what was not yet flushed; flushing takes as long as the test says. */
function fakeDisk(carry: (run: () => void) => void) {
  let safe: SpoolRecord[] = [];
  let dead = false;
  let pending: Promise<void> = Promise.resolve();
  return {
    open(): Spool {
      const state: SpoolState = emptyState('in_disk');
      for (const record of safe) applyRecord(state, record);
      let mine = true;
      dead = false;
      const crashed = () => {
        mine = false;
      };
      onCrash = crashed;
      return {
        state,
        append(records) {
          const copy = [...records];
          pending = new Promise<void>((resolve) => {
            carry(() => {
              if (!mine || dead) return;
              safe = [...safe, ...copy];
              resolve();
            });
          });
          return pending;
        },
        close: async () => {},
      };
    },
    crash() {
      onCrash();
      dead = true;
    },
  };
}
let onCrash: () => void = () => {};

/** A gateway that picks the scheduled answer of every question, and a random order between the two directions. */
function worldOf(seed: number) {
  const clock = manualClock();
  const random = seededRandom(seed);
  const gateway: ScriptedGateway = scriptedGateway({
    clock,
    carry: (deliver) => clock.soon(deliver),
    upFirst: () => random.unit() < 0.5,
    ackEvery: () => 1 + random.int(4),
    onProcessed(frame: Processed) {
      if (frame.type === 'picker.choice')
        gateway.tell({ type: 'picker.select', payload: { picker_id: frame.payload.picker_id, value: frame.payload.title ?? '' } });
    },
  });
  return { clock, random, gateway };
}

/** Exactly once and in order: what the gateway processed is what the agent said, no more, no less, no other order. */
function expectProcessed(gateway: ScriptedGateway, said: readonly SpoolRecord[]): void {
  const strip = ({ ack: _, ...frame }: { ack?: number }) => frame;
  const out = said.flatMap((record) => (record.k === 'out' ? [JSON.parse(JSON.stringify(record.f)) as object] : []));
  expect(gateway.processed.map(strip)).toEqual(out);
}

describe('whatever the line does', () => {
  test(
    'LNK5 LNK6 LNK7 LNK15: each durable frame is processed exactly once and in order, both ways',
    async () => {
      await fc.assert(
        fc.asyncProperty(plan, async ({ turns, cuts, seed }) => {
          const { clock, random, gateway } = worldOf(seed);
          const record: Record_ = { said: [], begun: new Map(), steered: new Map(), answers: new Map() };
          const steps = new Map<string, readonly Step[]>();
          const spool: Spool = {
            state: emptyState('in_1'),
            append(records) {
              record.said.push(...records);
              return undefined;
            },
            close: async () => {},
          };
          const wait = () => new Promise<void>((resolve) => void clock.after(1 + random.int(400), resolve));
          const agent: Agent = runAgent({
            gateway: 'ws://gateway.test/agent',
            token: 't',
            name: 'test',
            connect: gateway.net.connect,
            clock,
            random: random.unit,
            spool,
            onTurn(turn) {
              record.begun.set(turn.turn_id, (record.begun.get(turn.turn_id) ?? 0) + 1);
              return act(turn, steps.get(turn.message.text) ?? [], wait, record);
            },
          });
          const todo = [...cuts];
          const cutLater = () => {
            const after = todo.shift();
            if (after !== undefined) gateway.net.cutAfter(after);
          };
          cutLater();
          const steers: number[] = [];
          let dials = 0;
          for (const [i, turn] of turns.entries()) {
            steps.set(`turn ${i}`, turn.steps);
            const turn_id = gateway.startTurn(`turn ${i}`);
            await clock.advance(random.int(300));
            if (turn.steer) steers.push(gateway.steer(turn_id, `steer ${i}`));
            if (turn.stop) gateway.stop(turn_id);
            await clock.advance(random.int(300));
            if (gateway.net.dials > dials) {
              dials = gateway.net.dials;
              cutLater();
            }
          }
          // The rest of the cuts, one per link, then peace.
          while (todo.length > 0) {
            cutLater();
            await clock.advance(1_000);
          }
          await clock.advance(120_000);

          expect(gateway.faults).toEqual([]);
          expect(gateway.unacked).toBe(0);
          expect(agent.unacked).toBe(0);
          expectProcessed(gateway, record.said);
          expect([...record.begun.values()]).toEqual(turns.map(() => 1));
          for (const [i, turn] of [...gateway.turns.values()].entries()) {
            expect(turn.outcome).toBe(turns[i]!.stop && turn.outcome === 'cancelled' ? 'cancelled' : 'completed');
            for (const message of turn.messages.values()) expect(message.stopped).toBe(true);
          }
          expect(gateway.unanswered).toEqual([]);
          for (const count of record.steered.values()) expect(count).toBe(1);
          for (const seq of steers) expect(typeof gateway.steered(seq)).toBe('boolean');
          for (const [turn_id, answers] of record.answers) {
            const i = [...gateway.turns.keys()].indexOf(turn_id);
            const asked = turns[i]!.steps.flatMap((one) => (one.do === 'ask' ? [one.answer] : []));
            if (!turns[i]!.stop) expect(answers).toEqual(asked);
          }
          await agent.stop();
          await clock.settle();
          expect(clock.timers).toBe(0);
        }),
        { numRuns },
      );
    },
    timeout_ms,
  );

  test(
    'LNK7 LNK26: a process that dies at any moment loses nothing it has said, repeats nothing, and runs no turn twice',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          plan,
          fc.array(fc.integer({ min: 1, max: 600 }), { minLength: 1, maxLength: 4 }),
          async ({ turns, cuts, seed }, deaths) => {
            const { clock, random, gateway } = worldOf(seed);
            // Now and then a disk that takes longer than the line needs to come back.
            const disk = fakeDisk((run) => void clock.after(1 + random.int(random.unit() < 0.2 ? 800 : 5), run));
            const begun = new Map<string, number>();
            const steps = new Map<string, readonly Step[]>();
            const record: Record_ = { said: [], begun, steered: new Map(), answers: new Map() };
            const start = () =>
              runAgent({
                gateway: 'ws://gateway.test/agent',
                token: 't',
                name: 'test',
                connect: gateway.net.connect,
                clock: mortal(clock),
                random: random.unit,
                spool: disk.open(),
                onTurn(turn) {
                  begun.set(turn.turn_id, (begun.get(turn.turn_id) ?? 0) + 1);
                  return act(
                    turn,
                    steps.get(turn.message.text) ?? [],
                    () => new Promise<void>((resolve) => void clock.after(1 + random.int(100), resolve)),
                    record,
                  );
                },
              });
            let alive = true;
            /** A dead process has no timers. */
            function mortal(real: typeof clock): typeof clock {
              const life = { over: false };
              kill = () => {
                life.over = true;
              };
              const guard = (run: () => void) => () => {
                if (!life.over) run();
              };
              return {
                ...real,
                now: real.now,
                after: (ms, run) => real.after(ms, guard(run)),
                every: (ms, run) => real.every(ms, guard(run)),
                soon: (run) => real.soon(guard(run)),
              };
            }
            let kill: () => void = () => {};
            let agent: Agent = start();
            const die = () => {
              if (!alive) return;
              kill();
              disk.crash();
              gateway.net.cut();
              alive = true;
              agent = start();
            };
            const sent: string[] = [];
            const todo = [...cuts];
            for (const [i, turn] of turns.entries()) {
              steps.set(`turn ${i}`, turn.steps);
              sent.push(gateway.startTurn(`turn ${i}`));
              const cut = todo.shift();
              if (cut !== undefined) gateway.net.cutAfter(cut);
              const death = deaths[i];
              if (death !== undefined) {
                await clock.advance(death);
                die();
              }
              await clock.advance(random.int(200));
            }
            await clock.advance(200_000);
            expect(gateway.faults).toEqual([]);
            expect(gateway.unacked).toBe(0);
            expect(agent.unacked).toBe(0);
            for (const count of begun.values()) expect(count).toBe(1);
            // Every turn that was given has been taken and has ended, once.
            for (const turn_id of sent)
              expect(gateway.turns.get(turn_id)).toMatchObject({ accepted: true, outcome: expect.stringMatching(/completed|interrupted/) });
            // The sequence of the installation goes on over all its processes.
            expect(gateway.processed.map((frame) => frame.seq)).toEqual(gateway.processed.map((_, i) => i + 1));
            expect(new Set(gateway.hellos.map((hello) => hello.install_id)).size).toBe(1);
            await agent.stop();
          },
        ),
        { numRuns },
      );
    },
    timeout_ms,
  );
});
