import { onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

test('KEE1: pong echoes ts exactly and adds the gateway’s time', () =>
  onStage(async ({ world, a }) => {
    for (const ts of [0, 1724000000000, -1, 0.25, Number.MAX_SAFE_INTEGER])
      expect((await a.request('ping', { ts })).payload).toEqual({ ts, server_ts: world.time.now() });
    expect((await a.request('ping')).payload).toEqual({ server_ts: world.time.now() });
  }));

test('KEE1 ENV20: a ping without id is answered without id', () =>
  onStage(async ({ a }) => {
    a.say('ping', { ts: 5 });
    expect(await a.next('pong')).toEqual({ v: 1, type: 'pong', payload: { ts: 5, server_ts: expect.any(Number) } });
  }));

test('KEE2: ping is answered though no session instance, no outbox and no bus are there', () =>
  onStage(
    async ({ world, a }) => {
      for (const session of world.sessions) session.kill();
      world.loseBus(60_000);
      world.loseOutbox(60_000);
      const start = world.time.now();
      expect((await a.request('ping', { ts: 1 })).type).toBe('pong');
      expect(world.time.now() - start).toBeLessThan(10);
    },
    { unchecked: true },
  ));

test('KEE3: a ts that a double cannot hold is refused', () =>
  onStage(async ({ a }) => {
    a.raw('{"type":"ping","id":1,"payload":{"ts":9007199254740993}}');
    expect((await a.next('error')).payload).toMatchObject({ code: 'unsupported', message: expect.stringMatching(/^ts/) });
  }));

test('KEE4: a socket that answers no WebSocket ping is dropped within 25 s; others stay', () =>
  onStage(async ({ world, a, b }) => {
    b.autoPong(false);
    const start = world.time.now();
    expect((await b.closed({ within_ms: 30_000 })).code).toBe(1006);
    const took = world.time.now() - start;
    expect(took).toBeGreaterThanOrEqual(19_000);
    expect(took).toBeLessThanOrEqual(25_500);
    expect(a.connected).toBe(true);
  }));

test('KEE5: a device that says nothing but answers WebSocket pings stays for ten minutes', () =>
  onStage(async ({ world, a, b }) => {
    await world.advance(600_000);
    expect([a.connected, b.connected]).toEqual([true, true]);
    await a.send('after all that time');
    expect((await b.next('message')).payload.text).toBe('after all that time');
  }));
