/** Whatever is asked, in whatever order: the outbox in memory and the one in Redis give the same answers. */

import { type AppendFrame, memoryOutbox, type Outbox, redisOutbox } from '@iris/outbox';
import type { ConnectionId, DeviceId, EdgeId, TenantId } from '@iris/protocol';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { redisForTests } from './servers.js';

type Ask = (outbox: Outbox, tenant: TenantId) => Promise<unknown>;

const few = (name: string, count = 4) => fc.integer({ min: 1, max: count }).map((i) => `${name}${i}`);
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const frames = fc.array(
  fc
    .record({
      text: few('text', 50),
      key: optional(few('k', 60)),
      message_ids: optional(fc.array(few('m', 8), { maxLength: 3 })),
      lane: optional(few('lane', 3)),
      supersedes: optional(few('s', 3)),
      except_device_id: optional(few('d')),
      push: fc.boolean(),
    })
    .map(({ text, ...rest }) => {
      const given = Object.entries(rest).filter(([, value]) => value !== undefined);
      return { body: new TextEncoder().encode(text), type: 'message', ...Object.fromEntries(given) } as unknown as AppendFrame;
    }),
  { minLength: 1, maxLength: 40, size: 'max' },
);
const device = fc.record({ device_id: few('d'), edge_id: few('e', 3), connection_id: few('c', 8) }) as unknown as fc.Arbitrary<{
  device_id: DeviceId;
  edge_id: EdgeId;
  connection_id: ConnectionId;
}>;
const cursor = fc.integer({ min: 0, max: 200 });
const max_frames = fc.constantFrom(10, 100, 1_000, 1_000, 1_000, 1_000);

/** As text, for a failure that can be read, and as what is asked. */
const asked = (name: string, given: unknown, ask: Ask) => ({ toString: () => `${name} ${JSON.stringify(given)}`, ask });
const asks = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(frames, max_frames).map(([frames, max_frames]) =>
      asked('append', { frames, max_frames }, async (outbox, tenant_id) => {
        const [result] = await outbox.append([{ tenant_id, frames, max_frames }]);
        return result?.refused === undefined ? { ...result, edges: [...(result?.edges ?? [])].sort() } : result;
      }),
    ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(cursor, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 200 }), fc.boolean())
      .map(([after, limit, max_bytes, compact]) =>
        asked('read', { after, limit, max_bytes, compact }, (outbox, tenant) => outbox.read(tenant, after, { limit, max_bytes, compact })),
      ),
  },
  fc
    .tuple(cursor, cursor, optional(cursor))
    .map(([at, more, known]) => asked('seed', [at, more, known], (outbox, tenant) => outbox.seed(tenant, at, at + more, known))),
  cursor.map((limit) => asked('extend', limit, (outbox, tenant) => outbox.extend(tenant, limit))),
  fc
    .array(few('m', 8), { maxLength: 3 })
    .map((message_ids) => asked('forget', message_ids, (outbox, tenant) => outbox.forget(tenant, { message_ids }))),
  few('lane', 3).map((lane) => asked('forget', lane, (outbox, tenant) => outbox.forget(tenant, { lane }))),
  max_frames.map((max_frames) => asked('trim', max_frames, (outbox, tenant) => outbox.trim(tenant, { max_frames, before_ms: 0 }))),
  fc
    .tuple(device, cursor, fc.boolean())
    .map(([device, watermark, isNew]) =>
      asked('register', { ...device, watermark, new: isNew }, (outbox, tenant) =>
        outbox.register(tenant, { ...device, watermark, new: isNew }),
      ),
    ),
  device.map((device) => asked('unregister', device, (outbox, tenant) => outbox.unregister(tenant, device))),
  fc.tuple(few('e', 3), fc.array(device, { maxLength: 5 })).map(([edge_id, held]) =>
    asked('refresh', [edge_id, held], (outbox, tenant_id) =>
      outbox.refresh(
        edge_id as EdgeId,
        held.map((one) => ({ ...one, tenant_id })),
      ),
    ),
  ),
  fc
    .array(fc.tuple(few('d'), cursor), { maxLength: 5 })
    .map((marks) =>
      asked('confirm', marks, (outbox, tenant_id) =>
        outbox.confirm(marks.map(([device_id, cursor]) => ({ tenant_id, device_id: device_id as DeviceId, cursor }))),
      ),
    ),
  fc.constant(
    asked('devices', '', async (outbox, tenant) => (await outbox.devices(tenant)).sort((a, b) => (a.device_id < b.device_id ? -1 : 1))),
  ),
  fc
    .tuple(few('v'), fc.option(few('x')))
    .map(([name, value]) => asked('put', [name, value], (outbox, tenant) => outbox.put(tenant, { [name]: value }))),
  fc.constant(asked('values', '', (outbox, tenant) => outbox.values(tenant))),
  fc
    .integer({ min: 1, max: 5 })
    .map((i) =>
      i === 1 ? asked('drop', '', (outbox, tenant) => outbox.drop(tenant)) : asked('heads', '', (outbox, tenant) => outbox.heads([tenant])),
    ),
);

let server: { url: string; end(): Promise<void> };
let redis: Outbox;
const memory = memoryOutbox();
beforeAll(async () => {
  server = await redisForTests();
  redis = await redisOutbox({ url: server.url });
});
afterAll(async () => {
  await redis?.close();
  await server?.end();
});

test('memory and Redis answer alike', async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(asks, { minLength: 1, maxLength: 40, size: 'max' }), async (seeded, all) => {
      const tenant = `alike-${process.pid}-${Date.now().toString(36)}-${++count}` as TenantId;
      if (seeded) for (const outbox of [memory, redis]) await outbox.seed(tenant, 0, 10_000);
      for (const { ask } of all) {
        const [expected, found] = await Promise.all([ask(memory, tenant), ask(redis, tenant)]);
        expect(found).toEqual(expected);
      }
      await Promise.all([memory.drop(tenant), redis.drop(tenant)]);
    }),
    { numRuns: 300 },
  );
}, 120_000);
