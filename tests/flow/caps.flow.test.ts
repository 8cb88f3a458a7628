import { onStage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

test('CAP1 CAP2 ENV18: live durable frames carry their cursor for devices with cursors, and for no other', () =>
  onStage(async ({ tenant, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.delta('x');
    turn.stop();
    turn.end();
    await a.next('agent.idle');
    await b.next('agent.idle');
    const durable = ['message', 'message.start', 'message.stop', 'agent.busy', 'agent.idle'];
    expect(a.frames(durable).map(({ cursor }) => cursor)).toEqual(tenant.log.map(({ cursor }) => cursor));
    for (const frame of b.frames()) expect(frame).not.toHaveProperty('cursor');
    for (const frame of a.frames(['message.update', 'read.receipt'])) expect(frame).not.toHaveProperty('cursor');
  }));

describe('ack', () => {
  test('CAP3 CAP4: it moves the watermark, and is answered when it has an id', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        a.autoAck(false);
        await a.sync();
        await b.send('one');
        await b.send('two');
        const [one] = tenant.log;
        expect(await a.request('ack', { cursor: one!.cursor })).toMatchObject({ type: 'ack', payload: { ok: true } });
        await world.advance(2_500);
        expect(await world.backbone.outbox.watermark(tenant.tenant_id, 'phone' as never)).toBe(one!.cursor);
        a.cut();
        expect((await a.join()).payload.sync_cursor).toBe(one!.cursor);
      },
      { unchecked: true },
    ));

  test('CAP3: it never goes back, and never above the head', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        a.autoAck(false);
        await a.sync();
        for (const text of ['one', 'two', 'three']) await b.send(text);
        const head = tenant.log.at(-1)!.cursor;
        a.say('ack', { cursor: head });
        a.say('ack', { cursor: head - 2 });
        a.say('ack', { cursor: head + 1_000_000 });
        await world.advance(2_500);
        a.cut();
        expect((await a.join()).payload.sync_cursor).toBe(head);
      },
      { unchecked: true },
    ));

  test('ENV9: an ack of no position is refused', () =>
    onStage(async ({ a }) => {
      for (const cursor of [-1, 1.5, 'x', undefined])
        expect(await a.request('ack', cursor === undefined ? {} : { cursor: cursor as never })).toMatchObject({
          type: 'error',
          payload: { code: 'unsupported', message: expect.stringMatching(/^cursor/) },
        });
    }));
});

describe('pong as the receipt', () => {
  test('CAP5: what the device has read when it answers a ping is confirmed', () =>
    onStage(async ({ world, tenant, a, b }) => {
      await a.send('one');
      await b.next('message');
      await world.advance(7_000);
      expect(await world.backbone.outbox.watermark(tenant.tenant_id, 'tablet' as never)).toBe(tenant.log.at(-1)!.cursor);
    }));

  test('CAP5 D2: what was written to the socket and not read is not', () =>
    onStage(async ({ world, tenant, a, b }) => {
      await a.send('read');
      await b.next('message');
      await world.advance(7_000);
      b.pause();
      await a.send('not read');
      await world.advance(10_000);
      expect(await world.backbone.outbox.watermark(tenant.tenant_id, 'tablet' as never)).toBe(tenant.log[0]!.cursor);
      b.resume();
      await world.advance(7_000);
      expect(await world.backbone.outbox.watermark(tenant.tenant_id, 'tablet' as never)).toBe(tenant.log[1]!.cursor);
    }));

  test('CAP6 PSH2: after a frame worth a push the ping comes soon, and the watermark with it', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.message('answer');
      await b.next((frame) => frame.payload.text === 'answer');
      const start = world.time.now();
      const at = tenant.log.at(-1)!.cursor;
      for (;;) {
        if (((await world.backbone.outbox.watermark(tenant.tenant_id, 'tablet' as never)) ?? 0) >= at) break;
        await world.advance(50);
        if (world.time.now() - start > 2_000) throw new Error('the watermark does not move');
      }
      turn.end();
      await b.next('agent.idle');
    }));
});
