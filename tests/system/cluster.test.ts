import { type Cluster, cluster, expectChecks, lane, rollingRestart } from '@iris/testkit';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

let all: Cluster;
beforeAll(async () => {
  // How long an edge takes to close its sockets, when it is stopped.
  all = await cluster({ set: { drain_ms: 1_000 } });
}, 120_000);
afterAll(() => all?.close(), 60_000);

/** A device on each edge, and an agent. */
const party = async () => {
  const tenant = await all.tenant();
  const agent = tenant.agent({ edge: 1 });
  await agent.connect();
  const a = await tenant.join('phone', { edge: 0, caps: { cursors: true } });
  const b = await tenant.join('tablet', { edge: 1, caps: { cursors: true } });
  return { tenant, agent, a, b };
};

describe('two edges and two session instances on real servers', () => {
  test('ORD1 ORD3 OUT7: a device on each edge sees the other’s messages, both in one order', async () => {
    const { tenant, a, b } = await party();
    await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? a : b).send(`message ${i}`)));
    for (const device of [a, b]) await device.next((frame) => frame.type === 'message' && device.frames('message').length === 100);
    const order = a.frames('message').map(({ cursor }) => cursor);
    expect(b.frames('message').map(({ cursor }) => cursor)).toEqual(order);
    expect(b.frames('message').map(({ payload }) => payload)).toEqual(a.frames('message').map(({ payload }) => payload));
    const evidence = await tenant.evidence();
    expectChecks({ ...evidence, agents: [] });
    expect(evidence.histories.get('android:default')?.map(({ text }) => text)).toEqual(
      a.frames('message').map(({ payload }) => payload.text),
    );
  });

  test('STR1 TRN1 RCP1 SYN1: a streamed turn, live on both edges and by sync for one that was away', async () => {
    const { tenant, agent, a, b } = await party();
    const away = await tenant.join('desk', { edge: 0 });
    const from = away.connections[0]!.ack!.payload.sync_cursor;
    away.cut();
    await a.send('question');
    const turn = await agent.turn();
    turn.toolStart(0, 'terminal', { preview: 'ls' });
    turn.toolEnd(0, { output_preview: 'nothing' });
    turn.start();
    for (let i = 0; i < 20; i++) {
      turn.delta(`word${i} `);
      if (i % 5 === 0) await b.next('message.update');
    }
    turn.stop();
    turn.end();
    await Promise.all([a.next('agent.idle'), b.next('agent.idle'), a.next('read.receipt').catch(() => undefined)]);
    expect(a.frames('read.receipt')).toHaveLength(1);
    await away.join(tenant.dial(1));
    await away.sync(from);
    expect(away.frames('message.stop').map(({ payload }) => payload)).toEqual(b.frames('message.stop').map(({ payload }) => payload));
    expectChecks(await tenant.evidence());
  });

  test('STO1 C27 C29: a stop at any moment from 0 ms after the send, from the other device through the other edge, ends the turn', async () => {
    const tenant = await all.tenant();
    // Half a second of thinking, then words until it is told to stop.
    const agent = tenant.agent({
      edge: 1,
      script(turn) {
        setTimeout(() => turn.accept(), 50);
        const word = setInterval(() => {
          if (turn.state === 'offered') return;
          if (turn.running.size === 0 && !turn.stopped) turn.start();
          if (!turn.stopped) return turn.delta(`${turn.turn_id} `);
          clearInterval(word);
          if (turn.running.size > 0) turn.stop();
          turn.end('cancelled');
        }, 25);
      },
    });
    await agent.connect();
    const a = await tenant.join('phone', { edge: 0, caps: { cursors: true } });
    const b = await tenant.join('tablet', { edge: 1, caps: { cursors: true } });
    const took: number[] = [];
    for (const [count, offset] of [0, 0, 2, 5, 10, 20, 35, 50, 80, 130, 200, 400].entries()) {
      const [sender, stopper] = count % 2 === 0 ? [a, b] : [b, a];
      await sender.send(`question ${count}`);
      if (offset > 0) await new Promise((resolve) => setTimeout(resolve, offset));
      const asked = performance.now();
      expect((await stopper.request('agent.stop', {}, lane)).type).toBe('ack');
      // Taken back before it began, or ended by its agent: nothing of the lane runs, and nothing waits.
      const over = async () =>
        (await all.store.turns.open(tenant.tenant_id)).length + (await all.store.turns.waitingLanes(tenant.tenant_id)).length === 0;
      while (!(await over())) expect(performance.now() - asked).toBeLessThan(9_000);
      took.push(performance.now() - asked);
    }
    // Half of a busy machine's patience is no proof of the 2 s, but the gateway's own end of a stop that nobody heard comes after 10.
    expect(took.sort((x, y) => x - y)[took.length / 2]).toBeLessThan(2_000);
    for (const device of [a, b]) {
      const begun = () => device.frames(({ type, payload }) => type === 'agent.busy' && payload.reason === 'processing').length;
      const even = () => device.frames('agent.idle').length === begun() || undefined;
      await all.patience.wait(even, { describe: () => `${device.device_id} is not told of every end` });
    }
    expectChecks(await tenant.evidence());
  });

  test('HEL12: the same device on the other edge: the older connection gets 4409', async () => {
    const { tenant, a } = await party();
    const again = await tenant.join('phone', { edge: 1 });
    expect((await a.closed()).code).toBe(4409);
    expect((await again.request('ping', { ts: 1 })).type).toBe('pong');
  });

  test('HIS1 MSG4: history and client_ref across edges', async () => {
    const { a, b } = await party();
    const first = await a.send('once', { client_ref: 'r' });
    a.cut();
    await a.join();
    expect((await a.send('once', { client_ref: 'r' })).payload).toEqual(first.payload);
    expect((await b.history(lane)).payload.messages).toEqual([first.payload]);
  });

  test('ENV8 CLS7: invalid UTF-8 in a text frame ends the connection: with 1007, or as uWebSockets.js ends it (decision 7)', async () => {
    const { a, b } = await party();
    a.raw(new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]), 'text');
    expect([1006, 1007]).toContain((await a.closed()).code);
    expect(b.connected).toBe(true);
  });

  test('LIM1 CLS8: a text frame over 256 KiB closes with 1009', async () => {
    const { a, b } = await party();
    a.raw(JSON.stringify({ type: 'ping', payload: { ts: 1, x: 'x'.repeat(256 * 1024) } }));
    expect([1006, 1009]).toContain((await a.closed()).code);
    expect(b.connected).toBe(true);
  });

  // The last, since every process is another afterwards.
  test('HEL28 CLS9 ENV24 O1 O2 C53 C56: every edge and a session instance are replaced under load: every socket is closed with 1012 and comes back, nothing is lost', async () => {
    const report = await rollingRestart(all, { devices: 40, every_ms: 100, sessions: 1, watched: 40 });
    expect(report.exit_codes).toEqual([0, 0, 0]);
    // Each socket at least once, with 1012 and nothing else.
    expect(Object.keys(report.closes)).toEqual(['1012']);
    expect(report.closes[1012]).toBeGreaterThanOrEqual(40);
    expect(report.sends).toBeGreaterThan(10);
  }, 120_000);
});
