import { memoryHub, subjects, type ToEdge, unpack } from '@iris/bus';
import { memoryJobs } from '@iris/jobs';
import { memoryMedia } from '@iris/media';
import { memoryOutbox } from '@iris/outbox';
import {
  type AgentId,
  type ChatId,
  type ConnectionId,
  type DeviceId,
  durableMessage,
  type EdgeId,
  type MessageId,
  type TenantId,
} from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { manualClock, recordingMeter, seededRandom } from '@iris/runtime/testing';
import { type MessageRow, memoryStore } from '@iris/store';
import { expect, test } from '@jest/globals';
import { defaultWorkerConfig } from './config.js';
import { createWorker } from './worker.js';

const tenant_id = 'tenant' as TenantId;
const edge_id = 'edge' as EdgeId;
const lane = { chat_id: 'android:default' as ChatId, thread_id: null };

async function setting(quotas: Partial<typeof defaultWorkerConfig> = {}) {
  const clock = manualClock();
  const hub = memoryHub({ clock });
  const outbox = memoryOutbox({ clock });
  const store = memoryStore(clock);
  const jobs = memoryJobs({ clock });
  const meter = recordingMeter();
  const config = { ...defaultWorkerConfig, ...quotas };
  const worker = createWorker(
    { bus: hub.connect(), outbox, store, media: memoryMedia({ clock }), jobs, clock, random: seededRandom(1), log: silentLog, meter },
    config,
  );
  await store.tenants.create({ tenant_id, name: 'T', agent_id: 'ag' as AgentId, at: clock.now() });
  const block = await store.tenants.reserveCursors(tenant_id, 10);
  await outbox.seed(tenant_id, block!.from, block!.to);
  await outbox.register(tenant_id, { device_id: 'd' as DeviceId, edge_id, connection_id: 'c' as ConnectionId, watermark: 0, new: true });
  // As an edge does: without it, its lease would run out.
  const held = [{ tenant_id, device_id: 'd' as DeviceId, connection_id: 'c' as ConnectionId }];
  clock.every(5_000, () => void outbox.refresh(edge_id, held));
  const heard: ToEdge[] = [];
  hub.connect().subscribe(subjects.edge(edge_id), (data) => heard.push(...unpack<ToEdge>(data.slice())));
  const message = (n: number): MessageRow => ({
    tenant_id,
    chat_id: 'android:default' as ChatId,
    thread_id: null,
    message_id: `m_${n}` as MessageId,
    role: 'user',
    text: `text ${n}`,
    reasoning: null,
    media: null,
    reply_to: null,
    model: null,
    tokens: null,
    runtime: null,
    ts: clock.now(),
    cursor: null,
    idempotency_key: `k${n}`,
    client_ref: null,
    device_id: null,
    turn_id: null,
    own_id: null,
    steer: false,
    interrupted: false,
    late: false,
  });
  /** What a process that died right after its commit leaves. */
  const leave = async (...numbers: number[]) => void (await store.messages.insert(numbers.map((n) => ({ message: message(n) }))));
  const read = async () => (await outbox.read(tenant_id, 0, { limit: 100 })).entries;
  await worker.start();
  return { clock, outbox, store, worker, heard, leave, read, message, meter };
}

test('OUT12: a message whose process died between commit and append gets its place, and devices hear of it', async () => {
  const { clock, store, leave, heard, read, worker } = await setting();
  await leave(1, 2);
  await clock.advance(defaultWorkerConfig.owed_after_ms + defaultWorkerConfig.repair_ms);
  expect((await read()).map(({ type, message_id, cursor }) => [type, message_id, cursor])).toEqual([
    ['message', 'm_1', 1],
    ['message', 'm_2', 2],
  ]);
  expect((await store.messages.get(tenant_id, 'm_2' as MessageId))?.cursor).toBe(2);
  expect(heard.map((record) => record.kind === 'durable' && [record.cursor, record.previous])).toEqual([
    [1, 0],
    [2, 1],
  ]);
  await worker.stop();
});

test('OUT12: one that did get there, and only lost the note of its place, is not there twice', async () => {
  const { clock, outbox, store, leave, heard, read, message } = await setting();
  await leave(1);
  await outbox.append([{ tenant_id, frames: [durableMessage(message(1))], max_frames: 100 }]);
  await clock.advance(60_000);
  expect(await read()).toHaveLength(1);
  expect((await store.messages.get(tenant_id, 'm_1' as MessageId))?.cursor).toBe(1);
  expect(heard).toEqual([]);
});

test('a request that is still under way is left alone', async () => {
  const { clock, leave, read } = await setting();
  await leave(1);
  await clock.advance(defaultWorkerConfig.owed_after_ms - 1);
  expect(await read()).toEqual([]);
});

test('what was deleted before its repair does not come back', async () => {
  const { clock, store, leave, read } = await setting();
  await leave(1, 2);
  await store.messages.remove(tenant_id, { chat_id: 'android:default' as ChatId, thread_id: null }, ['m_1' as MessageId], clock.now());
  await clock.advance(60_000);
  expect((await read()).map(({ message_id }) => message_id)).toEqual(['m_2']);
});

test('more than the reserved cursors: another block is reserved', async () => {
  const { clock, leave, read } = await setting();
  await leave(...Array.from({ length: 25 }, (_, n) => n));
  await clock.advance(60_000);
  expect((await read()).map(({ cursor }) => cursor)).toEqual(Array.from({ length: 25 }, (_, n) => n + 1));
});

test('an outbox that lost its place is left to a session instance, and repaired once that has seeded it', async () => {
  const { clock, outbox, store, leave, read } = await setting();
  await leave(1);
  outbox.forgetEverything();
  await clock.advance(60_000);
  expect(await read()).toEqual([]);
  const block = await store.tenants.reserveCursors(tenant_id, 10);
  await outbox.seed(tenant_id, block!.from, block!.to);
  await clock.advance(60_000);
  expect((await read()).map(({ cursor }) => cursor)).toEqual([block!.from + 1]);
});

test('retention: frames past their number or age go', async () => {
  const { clock, outbox, leave, meter } = await setting({ outbox_max_frames: 3, outbox_max_age_ms: 3_600_000 });
  await leave(1, 2, 3, 4, 5);
  await clock.advance(60_000 + defaultWorkerConfig.retention_ms);
  expect(await outbox.read(tenant_id, 0, { limit: 10 })).toMatchObject({ floor: 2, head: 5 });
  await clock.advance(3_600_000 + defaultWorkerConfig.retention_ms);
  expect(await outbox.read(tenant_id, 0, { limit: 10 })).toMatchObject({ floor: 5, head: 5, entries: [] });
  expect(meter.total('iris_worker_repaired_total')).toBe(5);
});

test('HIS9: messages older than the quota allows go from history, search and outbox; younger ones and those of other tenants stay', async () => {
  const { clock, outbox, store, leave } = await setting();
  const age = 3 * 3_600_000;
  await leave(1, 2);
  await clock.advance(60_000);
  await clock.advance(age);
  await leave(3);
  await clock.advance(60_000);
  const texts = async () => {
    const history = await store.messages.page(tenant_id, lane, { limit: 9 });
    const found = await store.messages.search(tenant_id, { text: 'text', limit: 9 });
    const { entries } = await outbox.read(tenant_id, 0, { limit: 9 });
    const said = entries.map(({ body }) => /text \d/.exec(Buffer.from(body).toString())?.[0]);
    expect(found.rows.map(({ snippet }) => snippet).reverse()).toEqual(said);
    return [history === 'unknown_before' ? [] : history.rows.map(({ text }) => text), said];
  };
  const [three, all] = [['text 3'], ['text 1', 'text 2', 'text 3']];
  expect(await texts()).toEqual([all, all]);
  await clock.advance(defaultWorkerConfig.retention_ms);
  expect(await texts()).toEqual([all, all]);
  await store.tenants.setQuotas(tenant_id, { history_max_age_ms: age });
  await clock.advance(defaultWorkerConfig.retention_ms);
  expect(await texts()).toEqual([three, three]);
  // Its place is still one: an app that pages back from it is told that there is nothing more.
  expect(await store.messages.page(tenant_id, lane, { limit: 9, before: 'm_2' as MessageId })).toEqual({ rows: [], has_more: false });
  await clock.advance(age);
  await clock.advance(defaultWorkerConfig.retention_ms);
  expect(await texts()).toEqual([[], []]);
});

test('DEL2: of a deleted message the key goes too, once no repeat can carry it; its id goes on refusing it', async () => {
  const { clock, store, message, meter } = await setting({ keys_kept_ms: 24 * 3_600_000 });
  await store.messages.insert([{ message: message(1) }]);
  await store.messages.remove(tenant_id, lane, ['m_1' as MessageId], clock.now());
  const underOtherId = () => store.messages.insert([{ message: { ...message(1), message_id: 'm_2' as MessageId } }]);
  await clock.advance(24 * 3_600_000);
  expect(await underOtherId()).toEqual(['deleted']);
  await clock.advance(defaultWorkerConfig.keys_ms);
  expect(meter.total('iris_worker_expired_keys_total')).toBe(1);
  expect(await store.messages.insert([{ message: message(1) }])).toEqual(['deleted']);
  expect(await underOtherId()).toMatchObject([{ inserted: true }]);
});
