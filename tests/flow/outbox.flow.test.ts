import { lane, onStage, stayAttached } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const numbers = (count: number) => Array.from({ length: count }, (_, i) => `number ${i}`);

describe('what the bus loses', () => {
  test('OUT8: a lost frame is fetched from the outbox before any later one goes out', () =>
    onStage(async ({ world, a, b }) => {
      let lose = 0;
      world.backbone.onBus = ({ subject, kind }) => !(kind === 'publish' && subject === 'iris.edge.edge-2' && lose-- > 0);
      await a.send('number 0');
      await b.next('message');
      lose = 1;
      await a.send('number 1');
      await world.advance(100);
      expect(b.frames('message')).toHaveLength(1);
      await a.send('number 2');
      await b.next((frame) => frame.payload.text === 'number 2');
      expect(b.frames('message').map(({ payload }) => payload.text)).toEqual(numbers(3));
    }));

  test('OUT8: a lost last frame is noticed within three seconds', () =>
    onStage(async ({ world, a, b }) => {
      let lose = true;
      world.backbone.onBus = ({ subject, kind }) => !(lose && kind === 'publish' && subject === 'iris.edge.edge-2');
      await a.send('the last');
      const start = world.time.now();
      lose = false;
      expect((await b.next('message')).payload.text).toBe('the last');
      expect(world.time.now() - start).toBeLessThanOrEqual(3_000);
    }));

  test('OUT8 ENV25 ORD1: everything lost, repeated and overtaken, in both directions: each frame once, in order, each answer once', () =>
    onStage(async ({ world, a, b }) => {
      world.backbone.faults = { ...world.backbone.faults, bus_drop: 0.2, bus_repeat: 0.3, bus_reorder: 0.3, bus_late_ms: [1, 3_000] };
      // One that is not answered within its deadline is asked again, as an app does.
      for (const text of numbers(30)) while ((await a.send(text, { client_ref: text })).type === 'error');
      world.backbone.faults = { ...world.backbone.faults, bus_drop: 0, bus_repeat: 0, bus_reorder: 0 };
      await world.advance(5_000);
      // What was asked again may be the answer twice.
      expect([...new Set(a.frames('message').map(({ payload }) => payload.text))]).toEqual(numbers(30));
      expect(b.frames('message').map(({ payload }) => payload.text)).toEqual(numbers(30));
    }));

  test('OUT8: the broker is away for two seconds', () =>
    onStage(async ({ world, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      world.loseBus(2_000);
      for (let i = 0; i < 10; i++) {
        turn.delta(`${i} `);
        await world.advance(100);
      }
      turn.stop();
      turn.end();
      for (const device of [a, b]) {
        expect((await device.next('message.stop')).payload.final_text).toBe('0 1 2 3 4 5 6 7 8 9 ');
        await device.next('agent.idle');
      }
    }));
});

describe('a device that does not read', () => {
  test('OUT9 C41: costs the edge a bounded amount, and gets everything in order on the same socket', () =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        const turn = await (async () => {
          await a.send('go');
          return agent.turn();
        })();
        b.pause();
        const text = 'x'.repeat(2_000);
        const socket = world.edges[1]!.links.pairs;
        let most = 0;
        for (let i = 0; i < 1_000; i++) {
          turn.message(`${i} ${text}`);
          if (i % 20 === 19) {
            await world.advance(100);
            most = Math.max(most, socket.buffered);
          }
        }
        turn.end();
        await a.next('agent.idle');
        expect(most).toBeGreaterThan(100 * 1024);
        expect(most).toBeLessThan(256 * 1024 + 64 * 1024 + 256 * 1024);
        b.resume();
        await b.next('agent.idle');
        expect(b.connections).toHaveLength(1);
        const got = b.frames((frame) => frame.payload.role === 'assistant');
        expect(got.map(({ payload }) => Number.parseInt(payload.text!, 10))).toEqual(numbers(1_000).map((_, i) => i));
        expect(tenant.log.length).toBeGreaterThan(1_000);
      },
      { window_bytes: 64 * 1024 },
    ));

  test('OUT9: others on the same edge do not wait for it', () =>
    onStage(
      async ({ world, tenant, agent, a, b }) => {
        const other = await tenant.join('desk', { edge: 1 });
        await a.send('go');
        const turn = await agent.turn();
        b.pause();
        for (let i = 0; i < 400; i++) turn.message(`${i} ${'x'.repeat(2_000)}`);
        turn.end();
        await other.next('agent.idle');
        expect(b.frames('agent.idle')).toEqual([]);
        await world.advance(1_000);
        b.resume();
        await b.next('agent.idle');
      },
      { window_bytes: 64 * 1024 },
    ));

  test('OUT9 STR4: updates of a slow device are replaced by the newest', () =>
    onStage(
      async ({ world, agent, a, b }) => {
        await a.send('go');
        const turn = await agent.turn();
        turn.start();
        await b.next('message.start');
        b.pause();
        for (let i = 0; i < 300; i++) {
          turn.delta(`${'x'.repeat(300)} `);
          await world.advance(100);
          if (i % 10 === 0) b.autoPong(true);
        }
        const before = b.frames('message.update').length;
        b.resume();
        await world.advance(2_000);
        const waiting = b.frames('message.update').slice(before);
        // What was in the socket's buffer when it passed the mark, and the newest.
        expect(waiting.slice(0, -1).reduce((sum, { payload }) => sum + payload.text!.length, 0)).toBeLessThan(400 * 1024);
        expect(waiting.at(-1)?.payload.text).toHaveLength(300 * 301);
        turn.stop();
        turn.end();
        await b.next('agent.idle');
      },
      { window_bytes: 16 * 1024, edge_config: { silent_ms: 100_000 } },
    ));
});

describe('what the outbox loses', () => {
  test('OUT13: it comes back empty: cursors go on above all that were given, and nothing acknowledged is lost', () =>
    onStage(async ({ world, tenant, a, b }) => {
      for (const text of numbers(5)) await a.send(text);
      const highest = tenant.log.at(-1)!.cursor;
      world.loseOutbox(500);
      const answer = a.send('during');
      expect(await answer).toMatchObject({ type: 'message' });
      await b.next((frame) => frame.payload.text === 'during');
      await a.send('after');
      await b.next((frame) => frame.payload.text === 'after');
      for (const { cursor, frame } of tenant.log) if (frame.payload.text === 'during') expect(cursor).toBeGreaterThan(highest);
      expect((await a.historyAll(lane)).map(({ text }) => text)).toEqual([...numbers(5), 'during', 'after']);
    }));

  test('OUT13 SYN8: a device that was away is told that something may be missing', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        await a.send('seen');
        await b.next('message');
        await world.advance(7_000);
        b.cut();
        await a.send('missed');
        world.loseOutbox(200);
        await world.advance(1_000);
        await a.send('after');
        await b.join();
        const done = await b.sync();
        expect(done.payload.truncated ?? done.payload.reset).toBe(true);
        expect(done.payload.cursor).toBe(tenant.log.at(-1)!.cursor);
        expect((await b.historyAll(lane)).map(({ text }) => text)).toEqual(['seen', 'missed', 'after']);
      },
      { unchecked: true },
    ));

  test('SYN1 OUT2 O1: it comes back with all it had: a device that was away misses nothing, of what no history has either', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const unseen = await a.send('gone');
      await (await agent.turn()).end();
      await b.next('agent.idle');
      await world.advance(7_000);
      b.cut();
      const { payload } = await a.request('channel.create', { name: 'missed' });
      await a.send('missed');
      await a.request('message.delete', { message_ids: [unseen.payload.message_id!] }, lane);
      world.restartOutbox(200);
      await world.advance(1_000);
      await a.send('after');
      const head = tenant.log.at(-1)!.cursor;
      await b.join();
      const done = await b.sync();
      expect(done.payload).toEqual({ cursor: expect.any(Number) });
      expect(done.payload.cursor).toBeGreaterThanOrEqual(head);
      const frames = b.frames();
      expect(frames.filter(({ type }) => type === 'message').map((frame) => frame.payload.text)).toEqual(
        expect.arrayContaining(['missed', 'after']),
      );
      expect(frames.some((frame) => frame.type === 'channel.created' && frame.payload.chat_id === payload.chat_id)).toBe(true);
      expect(frames.some((frame) => frame.type === 'message.deleted')).toBe(true);
    }));

  test('OUT13: a device that had everything has lost nothing, and is not told so', () =>
    onStage(async ({ world, tenant, a, b }) => {
      await a.send('seen');
      await b.next('message');
      await world.advance(7_000);
      world.loseOutbox(200);
      await world.advance(1_000);
      await a.send('after');
      await b.next((frame) => frame.payload.text === 'after');
      expect(b.connections).toHaveLength(1);
      expect(a.connections).toHaveLength(1);
      expect(tenant.log).toHaveLength(2);
    }));

  test('OUT13: in mid-answer: the agent comes back, and the turn ends', () =>
    onStage(async (stage) => {
      const { world, agent, a, b } = stage;
      stayAttached(stage);
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('one ');
      await b.next('message.update');
      world.loseOutbox(1_000);
      for (let i = 0; i < 10; i++) {
        turn.delta(`${i} `);
        await world.advance(200);
      }
      turn.stop();
      turn.end();
      for (const device of [a, b]) {
        expect((await device.next('message.stop', { within_ms: 30_000 })).payload.final_text).toBe('one 0 1 2 3 4 5 6 7 8 9 ');
        await device.next('agent.idle', { within_ms: 30_000 });
      }
    }));
});
