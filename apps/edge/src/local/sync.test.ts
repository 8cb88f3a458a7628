import { describe, expect, test } from '@jest/globals';
import type { FakeSocket } from '../testing/fake-sockets.js';
import { rig } from '../testing/rig.js';
import { type EmitFrame, tenant } from '../testing/scripted-session.js';

const note = (n: number, more: Partial<EmitFrame> = {}): EmitFrame => ({
  frame: { type: 'commentary', chat_id: 'c', payload: { n } },
  ...more,
});
const upTo = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => i + from);
/** What came after hello: `n` of notes (with their cursor when shown), else the frame's type. */
const seen = (socket: FakeSocket, from = 2) =>
  socket.heard
    .slice(from)
    .map((one) =>
      one.type === 'commentary' ? (one.cursor === undefined ? `live ${one.payload.n}` : `sync ${one.payload.n}@${one.cursor}`) : one.type,
    );

async function away(frames: number) {
  const all = await rig();
  const first = await all.device('d1');
  first.drop();
  await all.clock.settle();
  await all.session.emit(...upTo(frames).map((n) => note(n)));
  return { ...all, back: await all.device('d1') };
}

describe('sync', () => {
  test('SYN1 SYN3 replays what is above the cursor, each with its own, then sync.done with the head', async () => {
    const { back, clock } = await away(5);
    back.say({ id: 1, type: 'sync', payload: { cursor: 2 } });
    await clock.settle();
    expect(seen(back)).toEqual(['sync 3@3', 'sync 4@4', 'sync 5@5', 'sync.done']);
    expect(back.heard.at(-1)).toEqual({ v: 1, id: 1, type: 'sync.done', payload: { cursor: 5 } });
  });

  test('SYN3 without a cursor from the watermark', async () => {
    const { back, clock } = await away(3);
    back.say({ id: 1, type: 'sync', payload: {} });
    await clock.settle();
    expect(seen(back)).toEqual(['sync 1@1', 'sync 2@2', 'sync 3@3', 'sync.done']);
  });

  test('SYN1 a long replay goes in pages and loses nothing', async () => {
    const { back, clock } = await away(1_234);
    back.say({ id: 1, type: 'sync', payload: { cursor: 0 } });
    await clock.settle();
    expect(seen(back)).toEqual([...upTo(1_234).map((n) => `sync ${n}@${n}`), 'sync.done']);
  });

  test('SYN2 SYN10 what came live is not replayed, and what comes meanwhile follows sync.done, live', async () => {
    const { back, clock, session } = await away(3);
    await session.emit(note(4), note(5));
    await clock.settle();
    back.say({ id: 1, type: 'sync', payload: { cursor: 1 } });
    await session.emit(note(6));
    await clock.settle();
    await session.emit(note(7));
    await clock.settle();
    expect(seen(back)).toEqual(['live 4', 'live 5', 'sync 2@2', 'sync 3@3', 'sync.done', 'live 6', 'live 7']);
    expect(back.heard.find((one) => one.type === 'sync.done')!.payload).toEqual({ cursor: 5 });
  });

  test('SYN1 with the cursor at the head, or nothing missed: sync.done alone', async () => {
    const { device, clock } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'sync', payload: {} });
    socket.say({ id: 2, type: 'sync', payload: { cursor: 0 } });
    await clock.settle();
    expect(socket.heard.slice(2)).toMatchObject([
      { id: 1, type: 'sync.done', payload: { cursor: 0 } },
      { id: 2, type: 'sync.done', payload: { cursor: 0 } },
    ]);
  });

  test('SYN12 two at once: each its own sync.done, in order; each replays what its cursor asks for', async () => {
    const { back, clock, edge } = await away(3);
    back.say({ id: 'a', type: 'sync', payload: { cursor: 1 } });
    back.say({ id: 'b', type: 'sync', payload: { cursor: 3 } });
    await clock.settle();
    expect(seen(back)).toEqual(['sync 2@2', 'sync 3@3', 'sync.done', 'sync.done']);
    expect(back.heard.filter((one) => one.type === 'sync.done').map((one) => one.id)).toEqual(['a', 'b']);
    back.say({ id: 'c', type: 'sync', payload: { cursor: 0 } });
    await clock.settle();
    expect(seen(back).slice(4)).toEqual(['sync 1@1', 'sync 2@2', 'sync 3@3', 'sync.done']);
    expect(edge.stats().catching_up).toBe(0);
  });

  test('SYN9 a cursor above the head is said, and never adopted', async () => {
    const { back, clock, session } = await away(3);
    back.say({ id: 1, type: 'sync', payload: { cursor: 99 } });
    await clock.settle();
    expect(back.heard.at(-1)).toMatchObject({ id: 1, type: 'sync.done', payload: { cursor: 3, reset: true } });
    await session.emit(note(4));
    await clock.settle();
    expect(seen(back).at(-1)).toBe('live 4');
  });

  test('SYN8 a cursor below what is kept is said: truncated', async () => {
    const { back, clock, outbox } = await away(30);
    await outbox.trim(tenant, { max_frames: 10, before_ms: 0 });
    back.say({ id: 1, type: 'sync', payload: { cursor: 5 } });
    await clock.settle();
    expect(seen(back)).toEqual([...upTo(30, 21).map((n) => `sync ${n}@${n}`), 'sync.done']);
    expect(back.heard.at(-1)!.payload).toEqual({ cursor: 30, truncated: true });
  });

  test('OUT13 the jump of a seed is no loss for whoever had everything before it', async () => {
    const { device, clock, session, outbox } = await rig();
    (await device('d1')).drop();
    await session.emit(note(1), note(2));
    outbox.forgetEverything();
    await outbox.seed(tenant, 500, 10_000, 2);
    await session.emit(note(3));
    const [had, missed] = [await device('d1'), await device('d2')];
    had.say({ id: 1, type: 'sync', payload: { cursor: 2 } });
    missed.say({ id: 1, type: 'sync', payload: { cursor: 1 } });
    await clock.settle();
    expect(had.heard.at(-1)!.payload).toEqual({ cursor: 501 });
    expect(missed.heard.at(-1)!.payload).toEqual({ cursor: 501, truncated: true });
    expect(seen(had)).toEqual(['sync 3@501', 'sync.done']);
  });

  test('SYN5 SYN11 compacted, and without the device’s own receipts', async () => {
    const { device, clock, session } = await rig();
    (await device('d1')).drop();
    await session.emit(
      note(1, { supersedes: 'activity:c' }),
      note(2, { except_device_id: 'd1' as never }),
      note(3, { supersedes: 'activity:c' }),
      note(4),
    );
    const back = await device('d1');
    back.say({ id: 1, type: 'sync', payload: { cursor: 0 } });
    await clock.settle();
    expect(seen(back)).toEqual(['sync 3@3', 'sync 4@4', 'sync.done']);
  });

  test.each([[-1], [1.5], ['5'], [null], [2 ** 53]])('SYN4 cursor %s is error unsupported', async (cursor) => {
    const { device } = await rig();
    const socket = await device();
    socket.say({ id: 1, type: 'sync', payload: { cursor } });
    expect(socket.heard.at(-1)).toMatchObject({
      id: 1,
      type: 'error',
      payload: { code: 'unsupported', message: expect.stringMatching(/^cursor/) },
    });
  });

  test('ENV23 with the outbox away it is error internal after 10 s, and live goes on', async () => {
    const { back, clock, outbox, session } = await away(3);
    outbox.setConnected(false);
    back.say({ id: 1, type: 'sync', payload: { cursor: 0 } });
    for (let i = 0; i < 11; i++) {
      await clock.advance(1_000);
      back.pong();
    }
    expect(back.heard.slice(2)).toMatchObject([{ id: 1, type: 'error', payload: { code: 'internal' } }]);
    outbox.setConnected(true);
    await session.emit(note(4));
    await clock.advance(500);
    expect(seen(back).slice(1)).toEqual(['live 4']);
  });

  test('CLS9 over an outbox that has lost its sequence it sends the device back to say hello', async () => {
    const { back, clock, outbox } = await away(3);
    outbox.forgetEverything();
    back.say({ id: 1, type: 'sync', payload: { cursor: 0 } });
    await clock.advance(4_000);
    expect(back.closedWith?.code).toBe(1012);
  });

  test('OUT9 a replay goes at the socket’s pace', async () => {
    const all = await rig();
    (await all.device('d1')).drop();
    const big = 'x'.repeat(2_000);
    await all.session.emit(...upTo(1_000).map((n) => ({ frame: { type: 'commentary', payload: { n, big } } })));
    const back = await all.device('d1');
    back.stall();
    back.say({ id: 1, type: 'sync', payload: { cursor: 0 } });
    await all.clock.settle();
    expect(back.peakBuffered).toBeLessThan(512 * 1024);
    back.resume();
    await all.clock.settle();
    expect(seen(back)).toHaveLength(1_001);
    expect(seen(back).at(-1)).toBe('sync.done');
  });
});
