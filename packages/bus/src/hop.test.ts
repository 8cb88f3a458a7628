import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { batchBytes, pack, packBatches, type ToEdge, type ToSession, unpack } from './hop.js';

type HopRecord = ToSession | ToEdge;

const id = fc.string({ minLength: 0, maxLength: 150, unit: 'grapheme', size: 'medium' });
const whole = fc.oneof(fc.nat(), fc.maxSafeNat());
const body = fc.uint8Array({ maxLength: 2_000, size: 'medium' });
const connection = { connection_id: id };
const peer = fc.constantFrom('device' as const, 'agent' as const);
const shapes = [
  fc.record(
    {
      kind: fc.constant('request'),
      tenant_id: id,
      edge_id: id,
      ...connection,
      n: whole,
      base: whole,
      peer,
      device_id: id,
      agent_id: id,
      epoch: whole,
      type: id,
      address: id,
      body,
    },
    { requiredKeys: ['kind', 'tenant_id', 'edge_id', 'connection_id', 'n', 'base', 'peer', 'type', 'body'] },
  ),
  fc.record({
    kind: fc.constant('update'),
    tenant_id: id,
    edge_id: id,
    ...connection,
    after_n: whole,
    order: whole,
    agent_id: id,
    epoch: whole,
    type: id,
    body,
  }),
  fc.record(
    { kind: fc.constant('gone'), tenant_id: id, edge_id: id, ...connection, peer, device_id: id, agent_id: id, epoch: whole, body },
    { requiredKeys: ['kind', 'tenant_id', 'edge_id', 'connection_id', 'peer', 'body'] },
  ),
  fc.record(
    { kind: fc.constant('answer'), ...connection, n: whole, cursor: whole, body },
    { requiredKeys: ['kind', 'connection_id', 'n', 'body'] },
  ),
  fc.record(
    {
      kind: fc.constant('durable'),
      tenant_id: id,
      cursor: whole,
      previous: whole,
      type: id,
      message_id: id,
      origin: fc.record({ ...connection, n: whole }),
      except_device_id: id,
      push: fc.boolean(),
      body,
    },
    { requiredKeys: ['kind', 'tenant_id', 'cursor', 'previous', 'type', 'push', 'body'] },
  ),
  fc.record(
    { kind: fc.constant('ephemeral'), tenant_id: id, after: whole, key: id, rev: whole, type: id, message_id: id, to: id, body },
    { requiredKeys: ['kind', 'tenant_id', 'after', 'key', 'rev', 'type', 'body'] },
  ),
  fc.record({ kind: fc.constant('close'), ...connection, code: whole, reason: id, body }),
  fc.record({ kind: fc.constant('agent'), ...connection, body }),
];
// The ids are branded strings, which a generator cannot know.
const records = fc.array(fc.oneof(...shapes), { maxLength: 20, size: 'medium' }) as unknown as fc.Arbitrary<HopRecord[]>;
/** `fc.record` makes objects without a prototype in some runs; equality here is of fields alone. */
const plain = (record: HopRecord) => ({ ...record });

describe('pack and unpack', () => {
  test('every record comes back as it was, wherever its bytes lie', () => {
    fc.assert(
      fc.property(records, fc.nat(7), (given, offset) => {
        const packed = pack(given);
        const moved = new Uint8Array(packed.length + offset);
        moved.set(packed, offset);
        expect(unpack(moved.subarray(offset))).toEqual(given.map(plain));
      }),
      { numRuns: 200 },
    );
  });

  test('batches hold the same records in the same order, none over the limit unless it is one record', () => {
    fc.assert(
      fc.property(records, fc.integer({ min: 1, max: 6_000 }), (given, maxBytes) => {
        const messages = packBatches(given, maxBytes);
        expect(messages.flatMap((message) => unpack(message))).toEqual(given.map(plain));
        for (const message of messages) if (message.length > maxBytes) expect(unpack(message)).toHaveLength(1);
      }),
      { numRuns: 150 },
    );
  });

  test('a short batch is one message, nothing is none, and the largest agent frame goes alone', () => {
    const answer: ToEdge = { kind: 'answer', connection_id: 'c' as never, n: 1, body: new Uint8Array(10) };
    const large: ToEdge = { ...answer, n: 2, body: new Uint8Array(1024 * 1024).fill(7) };
    expect(packBatches([])).toEqual([]);
    expect(packBatches([answer, answer])).toEqual([pack([answer, answer])]);
    expect(packBatches([answer, large, answer]).map((message) => message.length > batchBytes)).toEqual([false, true, false]);
  });

  test('random bytes, and cut or foreign messages, are refused with a RangeError or SyntaxError and never loop', () => {
    const refuse = (bytes: Uint8Array) => {
      try {
        unpack(bytes);
      } catch (error) {
        if (!(error instanceof RangeError) && !(error instanceof SyntaxError)) throw error;
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), refuse), { numRuns: 200 });
    fc.assert(
      fc.property(records, fc.nat(), (given, cut) => {
        const packed = pack(given);
        refuse(packed.subarray(0, cut % packed.length));
        refuse(new Uint8Array([1, ...packed.subarray(1, 1 + (cut % packed.length))]));
      }),
    );
    expect(() => unpack(new Uint8Array([2]))).toThrow('hop version 2');
    expect(() => unpack(new Uint8Array())).toThrow(RangeError);
  });

  test('a number that cannot be carried exactly is refused before anything is sent', () => {
    for (const n of [-1, 0.5, 2 ** 53, Number.NaN])
      expect(() => pack([{ kind: 'answer', connection_id: 'c' as never, n, body: new Uint8Array() }])).toThrow(RangeError);
  });

  test('a durable frame costs few bytes beside its body', () => {
    const record: ToEdge = {
      kind: 'durable',
      tenant_id: 'tnt_0123456789abcdef' as never,
      cursor: 123_456,
      previous: 123_455,
      type: 'message',
      message_id: 'msg_0123456789abcdef',
      push: true,
      body: new Uint8Array(300),
    };
    expect(pack([record]).length - 300).toBeLessThan(65);
  });
});
