import { describe, expect, test } from '@jest/globals';
import { rig } from './testing/rig.js';
import { type EmitFrame, tenant } from './testing/scripted-session.js';

const note = (n: number, more: Partial<EmitFrame> = {}): EmitFrame => ({
  frame: { type: 'commentary', chat_id: 'c', payload: { n } },
  ...more,
});
const d1 = 'd1' as never;

describe('keepalive', () => {
  test('KEE4 a socket that shows no sign of life is dropped between 20 and 25 s', async () => {
    const { device, clock, edge } = await rig();
    const socket = await device();
    await clock.advance(20_000);
    expect(socket.terminated).toBe(false);
    await clock.advance(5_250);
    expect(socket.terminated).toBe(true);
    expect(edge.stats()).toMatchObject({ devices: 0, known: 0, feeds: 0 });
  });

  test('KEE5 one that only answers pings stays, and so does one that only sends frames', async () => {
    const { device, clock } = await rig();
    const [pongs, frames] = [await device('d1'), await device('d2')];
    for (let i = 0; i < 60; i++) {
      await clock.advance(10_000);
      if (!pongs.closedWith) pongs.echo();
      frames.say({ type: 'ping', payload: {} });
    }
    expect([pongs.terminated, frames.terminated]).toEqual([false, false]);
    // 5 s apart.
    expect(pongs.pings.length).toBeGreaterThan(115);
    expect(pongs.pings.length).toBeLessThan(125);
  });
});

describe('receipts', () => {
  test('CAP5 the ping carries the position, and the pong moves the watermark', async () => {
    const { device, session, clock, outbox } = await rig();
    const socket = await device();
    await session.emit(note(1), note(2));
    await clock.advance(5_250);
    expect(socket.pings.at(-1)).toBe('2');
    expect(await outbox.watermark(tenant, d1)).toBe(0);
    socket.echo();
    await clock.advance(1_250);
    expect(await outbox.watermark(tenant, d1)).toBe(2);
  });

  test('CAP6 a frame worth a push is asked about within half a second', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    const before = socket.pings.length;
    await session.emit(note(1, { push: true }));
    await clock.advance(600);
    expect(socket.pings.slice(before)).toContain('1');
  });

  test('a pong that no ping has said confirms nothing', async () => {
    const { device, session, clock, outbox } = await rig();
    const socket = await device();
    await session.emit(note(1));
    await clock.settle();
    for (const data of ['1', '99', '-1', 'x', '9'.repeat(30), '1.5']) socket.pong(data);
    await clock.advance(1_250);
    expect(await outbox.watermark(tenant, d1)).toBe(0);
  });

  test('C11 hello without sync: live frames do not move the watermark past what was missed', async () => {
    const { device, session, clock, outbox } = await rig();
    (await device('d1')).drop();
    await session.emit(...[1, 2, 3, 4, 5].map((n) => note(n)));
    const socket = await device('d1');
    expect(socket.heard[0]!.payload.sync_cursor).toBe(0);
    await session.emit(note(6), note(7));
    for (let i = 0; i < 4; i++) {
      await clock.advance(5_000);
      expect(socket.pings.at(-1)).toBe('0');
      socket.echo();
    }
    socket.drop();
    await clock.advance(2_000);
    expect(await outbox.watermark(tenant, d1)).toBe(0);
    const again = await device('d1');
    expect(again.heard[0]!.payload.sync_cursor).toBe(0);
    again.say({ id: 1, type: 'sync', payload: {} });
    await clock.settle();
    expect(again.heard.filter((one) => one.type === 'commentary').map((one) => one.payload.n)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    // From here on it has everything.
    await clock.advance(5_000);
    again.echo();
    await clock.advance(1_250);
    expect(await outbox.watermark(tenant, d1)).toBe(7);
  });

  test('CAP3 ack: coalesced to one write a second, never back, never past what was given', async () => {
    const { device, session, clock, outbox } = await rig();
    const socket = await device('d1', { caps: { cursors: true } });
    await session.emit(note(1), note(2), note(3));
    await clock.settle();
    socket.say({ type: 'ack', payload: { cursor: 2 } });
    socket.say({ type: 'ack', payload: { cursor: 1 } });
    await clock.advance(1_000);
    expect(await outbox.watermark(tenant, d1)).toBe(2);
    socket.say({ id: 5, type: 'ack', payload: { cursor: 1_000 } });
    expect(socket.heard.at(-1)).toEqual({ v: 1, id: 5, type: 'ack', payload: { ok: true } });
    await clock.advance(1_000);
    expect(await outbox.watermark(tenant, d1)).toBe(3);
  });

  test('C11 CAP3 an ack of a device that has not synced counts no further than its watermark', async () => {
    const { device, session, clock, outbox } = await rig();
    (await device('d1')).drop();
    await session.emit(note(1));
    const socket = await device('d1', { caps: { cursors: true } });
    await session.emit(note(2));
    await clock.settle();
    socket.say({ type: 'ack', payload: { cursor: 2 } });
    await clock.advance(1_250);
    expect(await outbox.watermark(tenant, d1)).toBe(0);
  });

  test('a device that leaves is confirmed as far as it said, and no longer routed to', async () => {
    const { device, session, clock, outbox } = await rig();
    const socket = await device('d1');
    await session.emit(note(1, { push: true }));
    await clock.advance(600);
    socket.echo();
    socket.drop();
    await clock.settle();
    expect(await outbox.devices(tenant)).toEqual([{ device_id: 'd1', watermark: 1 }]);
  });

  test('a write that fails is made up for', async () => {
    const { device, session, clock, outbox } = await rig();
    const socket = await device('d1');
    await session.emit(note(1, { push: true }));
    await clock.advance(600);
    socket.echo();
    outbox.setConnected(false);
    await clock.advance(2_000);
    outbox.setConnected(true);
    await clock.advance(1_250);
    expect(await outbox.watermark(tenant, d1)).toBe(1);
  });
});

describe('routing', () => {
  test('every device is registered again once in 5 s, so its lease never runs out', async () => {
    const { device, clock, outbox, session } = await rig();
    const socket = await device('d1');
    for (let i = 0; i < 10; i++) {
      await clock.advance(5_000);
      socket.pong();
    }
    expect(await outbox.devices(tenant)).toMatchObject([{ device_id: 'd1', edge_id: 'e1' }]);
    await session.emit(note(1));
    await clock.settle();
    expect(socket.heard.at(-1)!.payload.n).toBe(1);
  });

  test('an outbox that is new has them at once', async () => {
    const { device, outbox, clock } = await rig();
    await device('d1');
    outbox.forgetEverything();
    await clock.settle();
    expect(await outbox.devices(tenant)).toMatchObject([{ device_id: 'd1', edge_id: 'e1' }]);
  });
});
