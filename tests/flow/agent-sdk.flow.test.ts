import { startAgent } from '@iris/agent';
import { runAgent, type Spool, type SpoolState, type Turn } from '@iris/agent-link';
import { frameTable } from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { type AgentProcess, type AnyFrame, agentProcess, onStage, type Stage, type StageOptions } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

interface Picker {
  readonly picker_id: string;
  readonly title: string;
  readonly choices?: readonly { value: string }[];
  readonly providers?: readonly { id: string; models: readonly { id: string }[] }[];
}

const idle = (frame: AnyFrame) => frame.type === 'agent.idle';

/** The demo agent, attached to the world by its SDK. */
async function demo(stage: Stage, edge?: () => number) {
  const { clock, connect } = agentProcess(stage.world, 'agent', edge);
  const agent = startAgent({
    gateway: 'ws://world/agent',
    token: stage.tenant.agent_token,
    backend: 'demo',
    log: silentLog,
    clock,
    random: stage.world.chance.fork('agent').unit,
    connect,
  });
  await stage.world.patience.wait(() => agent.online || undefined, { describe: () => 'the demo agent is not online' });
  await stage.world.settle();
  return { agent, clock };
}

const played = (play: (stage: Stage) => Promise<void>, options: StageOptions = {}) =>
  onStage(play, { agent: false, edge_config: { media_secret: undefined }, ...options });

/** A spool of one process, as the next one finds it. */
const spoolOf = (state: SpoolState): Spool => ({ state: structuredClone(state), append: () => undefined, close: async () => {} });

describe('the demo agent', () => {
  test('thinks, works, streams and ends; both devices see the same', () =>
    played(async (stage) => {
      const { a, b } = stage;
      await demo(stage);
      await a.send('Hello');
      for (const device of [a, b]) await device.next(idle, { within_ms: 60_000 });
      for (const device of [a, b])
        expect(device.frames().map(({ type }) => type)).toEqual(
          expect.arrayContaining([
            'message',
            'agent.busy',
            'message.start',
            'message.update',
            'tool.start',
            'tool.end',
            'message.stop',
            'agent.idle',
          ]),
        );
      const stops = [a, b].map((device) => device.frames('message.stop').at(-1)!);
      expect(stops[0]!.payload).toEqual(stops[1]!.payload);
      expect(stops[0]!.payload).toMatchObject({
        final_text: expect.stringContaining('demo agent'),
        reasoning: expect.any(String),
        runtime: { model: 'scripted' },
      });
    }));

  test('LNK9 LNK10: /demo shows every frame type that an agent can cause', () =>
    played(async (stage) => {
      const { world, a, b } = stage;
      await demo(stage);
      let answering = true;
      const answer = async () => {
        while (answering) {
          const picker = await a
            .next((frame) => frame.type.startsWith('picker.') && frame.type !== 'picker.closed', { within_ms: 600_000 })
            .catch(() => undefined);
          if (picker === undefined) return;
          const { picker_id, title, choices, providers } = picker.payload as unknown as Picker;
          if (title.startsWith('Quick')) continue;
          const value = choices?.[0]?.value ?? `${providers?.[0]?.id}/${providers?.[0]?.models[0]?.id}`;
          expect(await a.request('picker.select', { picker_id, value })).toMatchObject({ type: 'ack' });
        }
      };
      await a.send('/demo');
      const answered = answer();
      await b.next(idle, { within_ms: 1_200_000 });
      answering = false;
      await world.advance(5_000);
      const types = new Set(b.frames().map(({ type }) => type));
      const caused = Object.entries(frameTable).flatMap(([type, row]) =>
        'agent_up' in row && 'down' in row && row.down.class !== 'response' ? [type] : [],
      );
      // Only for devices with the cap; media are off here.
      const besides = new Set(['message.delta', 'reasoning.delta', 'media.offer', 'commands.catalog', 'history']);
      expect(caused.filter((type) => !types.has(type) && !besides.has(type))).toEqual([]);
      for (const type of ['agent.idle', 'channel.created', 'channel.renamed', 'message.deleted']) expect(types).toContain(type);
      expect(new Set(b.frames('notification').map(({ payload }) => payload.kind)).size).toBe(6);
      expect(new Set(b.frames('agent.busy').map(({ payload }) => payload.reason)).size).toBe(4);
      expect(b.frames('message').map(({ payload }) => payload.role)).toEqual(
        expect.arrayContaining(['user', 'assistant', 'system', 'cron']),
      );
      await answered;
    }));

  test('LNK20 LNK21 LNK22: echo, fail, stop and steer', () =>
    played(async (stage) => {
      const { a, b, world } = stage;
      await demo(stage);
      await a.send('/demo echo exactly  this ');
      expect((await b.next('message.stop')).payload.final_text).toBe('exactly  this ');
      await b.next(idle);

      await a.send('/demo fail no more ideas');
      expect((await b.next('message.stop', { within_ms: 30_000 })).payload.final_text).toBe('This sentence will not be');
      expect((await b.next((frame) => frame.payload.role === 'system')).payload.text).toContain('no more ideas');
      await b.next(idle);

      await a.send('demo long 1000 20');
      await b.next('message.update');
      await world.advance(1_000);
      await b.request('agent.stop', {}, { chat_id: 'android:default', thread_id: null });
      expect((await b.next('message.stop', { within_ms: 2_000 })).payload.final_text).toContain('This is sentence 10 of');
      await b.next(idle, { within_ms: 2_000 });

      await a.send('Tell me something');
      await b.next('message.start');
      await a.request('agent.steer', { text: 'and be quick' }, { chat_id: 'android:default', thread_id: null });
      expect((await b.next('message.stop', { within_ms: 60_000 })).payload.final_text).toContain('> and be quick');
      await b.next(idle);
    }));

  test('LNK44: gives an automatic thread its title', () =>
    played(async (stage) => {
      const { a, b } = stage;
      await demo(stage);
      await a.send('Can you please compare the two Postgres backup tools?', { auto_thread: true });
      const created = await b.next('channel.created');
      expect(created.payload).toMatchObject({ auto: true });
      expect((await b.next('channel.renamed', { within_ms: 60_000 })).payload).toMatchObject({
        thread_id: created.payload.thread_id,
        name: 'Compare two Postgres backup tools',
      });
    }));
});

describe('an agent on the SDK', () => {
  test.each([
    ['the edge of the link', (stage: Stage) => stage.world.edges[1]!.kill()],
    ['a session instance', (stage: Stage) => stage.world.sessions[0]!.kill()],
    ['the other session instance', (stage: Stage) => stage.world.sessions[1]!.kill()],
    ['Redis, which comes back empty', (stage: Stage) => stage.world.loseOutbox(2_000)],
    ['NATS for three seconds', (stage: Stage) => stage.world.loseBus(3_000)],
  ])('LNK7 LNK15 LNK31 LNK35: streams on when it loses %s', (_, harm) =>
    played(
      async (stage) => {
        const { a, world } = stage;
        // Through the second edge, so that the device on the first one sees all of it.
        await demo(stage, () => (world.edges[1]!.alive ? 1 : 0));
        await a.send('demo long 300 20');
        await a.next('message.update');
        await world.advance(1_000);
        harm(stage);
        const stop = await a.next('message.stop', { within_ms: 60_000 });
        expect(stop.payload.interrupted ?? false).toBe(false);
        expect(stop.payload.final_text?.match(/This is sentence/g)).toHaveLength(300);
        await a.next(idle, { within_ms: 10_000 });
        await world.advance(40_000);
        expect(a.frames('message.stop')).toHaveLength(1);
        expect(a.frames(idle)).toHaveLength(1);
        // And the next turn is as any other.
        await a.send('/demo echo still here');
        expect((await a.next('message.stop', { within_ms: 60_000 })).payload.final_text).toBe('still here');
        await a.next(idle);
      },
      { expected: ['*'] },
    ),
  );

  /** One process of an agent that can be killed; its spool stays. */
  function process(stage: Stage, name: string, spool: Spool, onTurn: (turn: Turn) => Promise<void>): AgentProcess {
    const mine = agentProcess(stage.world, name);
    runAgent({
      gateway: 'ws://world/agent',
      token: stage.tenant.agent_token,
      name: 'test',
      spool,
      clock: mine.clock,
      random: stage.world.chance.fork(name).unit,
      connect: mine.connect,
      onTurn,
    });
    return mine;
  }
  const fresh = (): Spool => ({
    state: { install_id: 'in_test', next_seq: 1, acked: 0, in_seq: 0, unacked: [], turns: new Map(), ended: new Set() },
    append: () => undefined,
    close: async () => {},
  });

  test('LNK32 LNK34: killed in mid-turn, and started again with its spool: the turn ends as interrupted, and is not run again', () =>
    played(async (stage) => {
      const { a, world } = stage;
      const runs: string[] = [];
      const first = fresh();
      const dead = process(stage, 'first', first, async (turn) => {
        runs.push(turn.message.text);
        turn.write('half an answer');
        await new Promise(() => {});
      });
      await world.settle();
      await a.send('one');
      await a.next('message.update');
      await world.advance(300);
      dead.kill();
      const spool = spoolOf(first.state);
      await world.advance(1_000);
      process(stage, 'second', spool, async (turn) => {
        runs.push(turn.message.text);
        turn.write(`answer to ${turn.message.text}`);
      });
      expect((await a.next('message.stop', { within_ms: 60_000 })).payload).toMatchObject({
        final_text: 'half an answer',
        interrupted: true,
      });
      await a.next(idle);
      await a.send('two');
      expect((await a.next('message.stop', { within_ms: 60_000 })).payload.final_text).toBe('answer to two');
      await a.next(idle);
      expect(runs).toEqual(['one', 'two']);
    }));

  test('LNK5 LNK7 LNK26: killed after it has answered and before that was heard: the answer comes with the next process, once', () =>
    played(async (stage) => {
      const { a, world } = stage;
      const first = fresh();
      let cut = false;
      const { clock, connect, kill } = agentProcess(world, 'first');
      runAgent({
        gateway: 'ws://world/agent',
        token: stage.tenant.agent_token,
        name: 'test',
        spool: first,
        clock,
        random: world.chance.fork('first').unit,
        // What it says after the cut goes nowhere.
        connect: (url, options, events) => {
          const socket = connect(url, options, events);
          return { ...socket, send: (text) => (cut ? undefined : socket.send(text)) };
        },
        async onTurn(turn) {
          turn.write('the answer');
          await new Promise<void>((resolve) => void clock.after(500, resolve));
          cut = true;
          turn.write(', whole');
        },
      });
      await world.settle();
      await a.send('one');
      await a.next('message.update');
      await world.advance(1_000);
      kill();
      process(stage, 'second', spoolOf(first.state), async () => {});
      expect((await a.next('message.stop', { within_ms: 60_000 })).payload).toMatchObject({ final_text: 'the answer, whole' });
      await a.next(idle);
      await world.advance(60_000);
      expect(a.frames('message.stop')).toHaveLength(1);
      expect(a.frames(({ type, payload }) => type === 'message' && payload.role === 'assistant')).toEqual([]);
    }));
});
