import type { DeviceId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { memoryOutbox, type OutboxStep } from './memory-outbox.js';
import { type AppendFrame, type Outbox, OutboxUnavailable } from './outbox.js';

const tenant = 't' as TenantId;
const frame = (key: string): AppendFrame => ({ body: new Uint8Array([1]), type: 'message', push: false, key });
const append = async (outbox: Outbox, ...keys: string[]) =>
  (await outbox.append([{ tenant_id: tenant, frames: keys.map(frame), max_frames: 100 }]))[0]!;

describe('what tests can do to the outbox in memory', () => {
  test('it forgets everything, as a server restarted empty: unseeded, and every handle is told', async () => {
    const root = memoryOutbox();
    const [a, b] = [root.connect(), root.connect()];
    const told: string[] = [];
    a.onReconnected(() => told.push('a'));
    const stop = b.onReconnected(() => told.push('b'));
    await a.seed(tenant, 0, 100);
    await append(a, 'k');
    await a.confirm([{ tenant_id: tenant, device_id: 'd' as DeviceId, cursor: 1 }]);
    root.forgetEverything();
    expect(told).toEqual(['a', 'b']);
    expect(await append(b, 'k')).toEqual({ refused: 'unseeded' });
    expect(await b.watermark(tenant, 'd' as DeviceId)).toBeUndefined();
    await b.seed(tenant, 100, 200, 100);
    expect(await append(a, 'k')).toMatchObject({ cursors: [101], fresh: [true], previous: 100 });
    stop();
    await a.close();
    root.forgetEverything();
    expect(told).toEqual(['a', 'b']);
  });

  test('it restarts with what it had: read, but not trusted until seeded, and then never below', async () => {
    const outbox = memoryOutbox();
    await outbox.seed(tenant, 0, 100);
    await append(outbox, 'a', 'b');
    outbox.restart();
    expect(await append(outbox, 'c')).toEqual({ refused: 'unseeded' });
    expect(await outbox.read(tenant, 0, { limit: 10 })).toMatchObject({ head: 2, unseeded: true, entries: [{ cursor: 1 }, { cursor: 2 }] });
    await outbox.seed(tenant, 1, 100);
    expect(await append(outbox, 'c')).toMatchObject({ cursors: [3] });
  });

  test('SYN1 OUT2: it restarts with all that was given: what was logged and its keys stay, on both sides of the jump', async () => {
    const outbox = memoryOutbox();
    await outbox.seed(tenant, 0, 100);
    await append(outbox, 'a', 'b', 'c');
    await outbox.put(tenant, { 'turn:1': 'running' });
    outbox.restart();
    await outbox.seed(tenant, 100, 200, 3);
    expect(await append(outbox, 'd')).toMatchObject({ cursors: [101], previous: 3 });
    const page = await outbox.read(tenant, 1, { limit: 10 });
    expect(page).toMatchObject({ floor: 0, last_known: 3, next: 101, entries: [{ cursor: 2 }, { cursor: 3 }, { cursor: 101 }] });
    expect(await outbox.values(tenant)).toEqual(new Map());
    // The jump does not count as frames that are kept.
    expect(await outbox.trim(tenant, { max_frames: 3, before_ms: 0 })).toBe(1);
    expect(await outbox.trim(tenant, { max_frames: 1, before_ms: 0 })).toBe(100);
    expect(await outbox.read(tenant, 3, { limit: 10 })).toMatchObject({ last_known: 3, entries: [{ cursor: 101 }] });
  });

  test('SYN1 OUT2: it restarts twice with all that was given: neither jump counts as frames', async () => {
    const outbox = memoryOutbox();
    await outbox.seed(tenant, 0, 100);
    await append(outbox, 'a', 'b');
    outbox.restart();
    await outbox.seed(tenant, 1_000, 2_000, 2);
    await append(outbox, 'c');
    outbox.restart();
    await outbox.seed(tenant, 2_000, 3_000, 1_001);
    await append(outbox, 'd');
    expect(await outbox.trim(tenant, { max_frames: 10, before_ms: 0 })).toBe(0);
    const { entries } = await outbox.read(tenant, 0, { limit: 10 });
    expect(entries.map(({ cursor }) => cursor)).toEqual([1, 2, 1_001, 2_001]);
  });

  test('it restarts without the last of what was given: nothing of it is trusted', async () => {
    const outbox = memoryOutbox();
    await outbox.seed(tenant, 0, 100);
    await append(outbox, 'a', 'b');
    outbox.restart();
    await outbox.seed(tenant, 100, 200, 3);
    expect(await outbox.read(tenant, 0, { limit: 10 })).toMatchObject({ floor: 100, last_known: 3, entries: [] });
  });

  test('out of reach every call is refused, until it is back', async () => {
    const root = memoryOutbox();
    const outbox = root.connect();
    let told = 0;
    outbox.onReconnected(() => told++);
    root.setConnected(false);
    expect([root.connected, outbox.connected]).toEqual([false, false]);
    await expect(append(outbox, 'a')).rejects.toBeInstanceOf(OutboxUnavailable);
    root.setConnected(true);
    expect([root.connected, told]).toEqual([true, 1]);
    expect(await append(outbox, 'a')).toEqual({ refused: 'unseeded' });
  });

  test('a call that is lost had no effect, one whose answer is lost had it; the key makes asking again safe', async () => {
    const lose: { step?: OutboxStep['step'] } = {};
    const outbox = memoryOutbox({
      deliver(step) {
        if (step.operation === 'append' && step.step === lose.step) step.fail();
        else queueMicrotask(step.run);
      },
    });
    await outbox.seed(tenant, 0, 100);
    lose.step = 'call';
    await expect(append(outbox, 'a')).rejects.toBeInstanceOf(OutboxUnavailable);
    lose.step = 'answer';
    await expect(append(outbox, 'b')).rejects.toBeInstanceOf(OutboxUnavailable);
    delete lose.step;
    expect(await append(outbox, 'a', 'b')).toMatchObject({ cursors: [2, 1], fresh: [true, false] });
  });
});
