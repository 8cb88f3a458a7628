import { readdirSync, readFileSync } from 'node:fs';
import { limits } from '@iris/protocol';
import fc from 'fast-check';

/** One message as it goes to the gateway. */
export type Sent =
  | { readonly kind: 'text'; readonly text: string }
  /** Bytes, as a text frame or a binary one. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly as: 'text' | 'binary' };

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const folder = new URL('../../packages/protocol/fixtures/', import.meta.url);
const fixturesOf = (side: string): Json[] =>
  readdirSync(new URL(`${side}/`, folder)).map((file) => JSON.parse(readFileSync(new URL(`${side}/${file}`, folder), 'utf8')) as Json);

/** Numbers that JSON can say and JavaScript cannot hold stand in texts as these, and are put in at the end. */
const literals = ['1e400', '-1e400', '9007199254740993', '-0', '1E2', '0.1e-400'];
const literal = (text: string) => text.replace(/"<<([^"<>]*)>>"/g, '$1');

/** Names of what is there in a tenant, as far as the test has made it: so that what is nearly right goes deep. */
export const known = ['android:default', 'android:chan_1', 't_1', 'm_known', 'm_run', 'pk_known', 'tn_known', 'mu_1'];
/** Requests that are about what is there. */
const lane = { chat_id: 'android:default', thread_id: null };
const apt: readonly { [name: string]: Json }[] = [
  { type: 'message.send', ...lane, payload: { text: 'words', reply_to: 'm_known', client_ref: 'again' } },
  { type: 'message.send', ...lane, payload: { text: 'a thread of its own', auto_thread: true } },
  { type: 'message.send', chat_id: 'android:chan_1', payload: { text: '/stop' } },
  { type: 'message.delete', ...lane, payload: { message_ids: ['m_known', 'm_run'] } },
  { type: 'history', ...lane, payload: { before_message_id: 'm_known', limit: 3 } },
  { type: 'read.receipt', ...lane, payload: { message_id: 'm_known' } },
  { type: 'picker.select', payload: { picker_id: 'pk_known', value: 'a' } },
  { type: 'agent.stop', ...lane, payload: {} },
  { type: 'agent.steer', ...lane, payload: { text: 'elsewhere' } },
  { type: 'channel.create', payload: { name: 'Thread', kind: 'thread', parent_chat_id: 'android:chan_1' } },
  { type: 'channel.rename', chat_id: 'android:chan_1', payload: { name: 'Other' } },
  { type: 'channel.set_default', chat_id: 'android:chan_1', payload: {} },
  { type: 'channel.delete', chat_id: 'android:chan_1', payload: {} },
  { type: 'search', payload: { query: 'known "words" -x', scope: 'chat', chat_id: 'android:default' } },
];

const strings = fc.oneof(
  fc.constantFrom(...known, '', ' ', '__proto__', 'constructor', 'toString', 'hasOwnProperty', '\u0000', '\ud800', 'a\udc00b', '\ufeff'),
  fc.constantFrom("' OR 1=1 --", '%', '\\', '"', '<script>', '../../etc/passwd', '{"a":1}', 'null', '0', 'NaN'),
  fc.constantFrom('x'.repeat(65), 'x'.repeat(129), 'é'.repeat(5_000), 'x'.repeat(70_000), '😀'.repeat(200)),
  fc.string({ unit: 'binary', maxLength: 40 }),
);
const deep = (levels: number): Json => (levels === 0 ? 1 : levels % 2 === 0 ? [deep(levels - 1)] : { a: deep(levels - 1) });
const values: fc.Arbitrary<Json> = fc.oneof(
  { arbitrary: strings, weight: 4 },
  {
    arbitrary: fc.oneof(
      fc.constantFrom<Json>(0, -1, 1, 1.5, 2 ** 31, 2 ** 53 - 1, -(2 ** 53), 1e308, 5e-324, 1e21),
      fc.constantFrom(...literals.map((one) => `<<${one}>>`)),
    ),
    weight: 3,
  },
  fc.constantFrom<Json>(null, true, false, [], {}, [null], [[]], { length: 3 }, { '': 1 }),
  fc.constantFrom<Json>(deep(29), deep(33), deep(200), Array(1_001).fill('m_1') as Json[], Array(40).fill('mu_1') as Json[]),
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>,
);

interface Change {
  readonly where: number;
  readonly how: 'remove' | 'replace' | 'add';
  readonly name: string;
  readonly value: Json;
}
const change: fc.Arbitrary<Change> = fc.record({
  where: fc.nat(1_000),
  how: fc.constantFrom('remove' as const, 'replace' as const, 'replace' as const, 'add' as const),
  name: fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'extra',
    'chat_id',
    'thread_id',
    'id',
    'v',
    'cursor',
    'seq',
    'payload',
    '',
  ),
  value: values,
});

/** Every place in a value, as the way to it. */
function placesOf(value: Json, way: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [way];
  return [way, ...Object.entries(value).flatMap(([name, inner]) => placesOf(inner, [...way, name]))];
}
function changed(value: Json, way: readonly string[], how: Change): Json | undefined {
  const [name, ...rest] = way;
  if (name === undefined) {
    if (how.how === 'remove') return undefined;
    if (how.how === 'add' && typeof value === 'object' && value !== null && !Array.isArray(value))
      return Object.fromEntries([...Object.entries(value), [how.name, how.value]]);
    return how.value;
  }
  // Of entries, so that `__proto__` is a name like any other.
  const entries = Object.entries(value as object).flatMap(([key, inner]): [string, Json][] => {
    const made = key === name ? changed(inner as Json, rest, how) : (inner as Json);
    return made === undefined ? [] : [[key, made]];
  });
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}
function mangled(frame: Json, changes: readonly Change[]): Json {
  let value = frame;
  for (const one of changes) {
    // The envelope itself stays an object most of the time; texts of any kind are made elsewhere.
    const places = placesOf(value).slice(one.how === 'add' ? 0 : 1);
    const way = places[one.where % Math.max(1, places.length)] ?? [];
    value = changed(value, way, one) ?? {};
  }
  return value;
}

/** A frame of this side, right or with some of it wrong: removed, of another type, huge, or more than there should be. */
const framesOf = (side: 'device-up' | 'agent-up'): fc.Arbitrary<Sent> => {
  const fixtures = side === 'device-up' ? [...fixturesOf(side), ...apt, ...apt] : fixturesOf(side);
  const id = fc.oneof(
    { arbitrary: fc.integer({ min: 1, max: 30 }), weight: 5 },
    { arbitrary: fc.string({ minLength: 1, maxLength: 64 }), weight: 1 },
  );
  return fc
    .record({
      fixture: fc.constantFrom(...fixtures),
      id: fc.option(id, { nil: undefined, freq: 6 }),
      changes: fc.oneof(
        { arbitrary: fc.constant([]), weight: 2 },
        { arbitrary: fc.tuple(change), weight: 3 },
        { arbitrary: fc.array(change, { minLength: 2, maxLength: 3 }), weight: 1 },
      ),
    })
    .map(({ fixture, id, changes }) => {
      const frame = fixture as { [name: string]: Json };
      const { id: _, ...rest } = frame;
      const whole = side === 'agent-up' ? frame : id === undefined ? rest : { ...rest, id };
      return { kind: 'text', text: literal(JSON.stringify(mangled(whole, changes))) } as const;
    });
};
const anything: fc.Arbitrary<Sent> = fc.oneof(
  fc.record({
    kind: fc.constant('bytes' as const),
    bytes: fc.uint8Array({ maxLength: 200 }),
    as: fc.constantFrom('text' as const, 'binary' as const),
  }),
  fc.string({ unit: 'binary', maxLength: 100 }).map((text) => ({ kind: 'text', text }) as const),
  fc.json({ maxDepth: 5 }).map((text) => ({ kind: 'text', text }) as const),
  fc
    .constantFrom(
      '['.repeat(50_000),
      '{"a":'.repeat(5_000),
      '"',
      '{"id":1,"type":"ping"',
      '\ufeff{"type":"ping"}',
      '{"type":"ping","type":7,"id":3}',
    )
    .map((text) => ({ kind: 'text', text }) as const),
);

/** Mostly frames; now and then something that is none, which after ten ends the connection. */
export const sentBy = (side: 'device-up' | 'agent-up'): fc.Arbitrary<Sent> =>
  fc.oneof({ arbitrary: framesOf(side), weight: 8 }, { arbitrary: anything, weight: 1 });
export const anySent: fc.Arbitrary<Sent> = fc.oneof(anything, framesOf('device-up'), framesOf('agent-up'));

/** What may be answered by its `id`; how often: `media` takes a start and an end, or answers a pull with two frames. */
export function answerable(sent: Sent): { readonly id: string | number; readonly exactly: boolean } | undefined {
  if (sent.kind !== 'text' || Buffer.byteLength(sent.text) > limits.frame_bytes) return undefined;
  try {
    const frame = JSON.parse(sent.text) as { id?: unknown; type?: unknown };
    if (typeof frame !== 'object' || frame === null || Array.isArray(frame)) return undefined;
    const { id, type } = frame;
    const usable = typeof id === 'string' ? id !== '' && [...id].length <= 64 : Number.isSafeInteger(id);
    if (!usable) return undefined;
    return { id: id as string | number, exactly: !(typeof type === 'string' && type.startsWith('media.')) };
  } catch {
    return undefined;
  }
}

/** How many samples, and where they begin: `IRIS_FUZZ_RUNS`, `IRIS_FUZZ_SEED`. */
export const runs = (usual: number): number => Math.ceil((usual * Number(process.env.IRIS_FUZZ_RUNS ?? 100)) / 100);
export const seed = Number(process.env.IRIS_FUZZ_SEED ?? 1);
