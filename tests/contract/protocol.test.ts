import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Parser } from '@asyncapi/parser';
import { type DownFrame, decode, decodeAgent, encode, frameTypes, payloadFault, rowOf, splice, type UpFrame } from '@iris/protocol';
import { asyncApi, frameName, jsonSchema, parseRules, plain, saidBy, sideNames, sides } from '@iris/protocol/documents';
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';

const folder = fileURLToPath(new URL('../../packages/protocol/', import.meta.url));
type Frame = { readonly type: string; readonly payload: Record<string, unknown> } & Record<string, unknown>;
const fixtures = new Map<string, Frame>(
  Object.values(sideNames).flatMap((side) =>
    readdirSync(join(folder, 'fixtures', side)).map((file): [string, Frame] => [
      `${side}.${file.replace(/\.json$/, '')}`,
      JSON.parse(readFileSync(join(folder, 'fixtures', side, file), 'utf8')) as Frame,
    ]),
  ),
);
const rules = parseRules(readFileSync(join(folder, 'SPEC.md'), 'utf8'));
const said = sides.flatMap((side) => saidBy(side).map((one) => ({ side, name: frameName(side, one.type), ...one })));
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe('the frame table, the rules and the fixtures name each other', () => {
  test('each rule that a row names stands in SPEC.md', () => {
    const ids = new Set(rules.map((rule) => rule.id));
    for (const type of frameTypes) for (const id of rowOf(type)!.rules) expect([type, id, ids.has(id)]).toEqual([type, id, true]);
  });
  test('each type has rules, a schema per side, and an answer that devices hear', () => {
    for (const type of frameTypes) {
      const row = rowOf(type)!;
      expect([type, row.rules.length > 0]).toEqual([type, true]);
      expect([type, sides.some((side) => row[side] !== undefined)]).toEqual([type, true]);
      const answer = row.up?.answer ?? null;
      if (answer !== null) expect([type, rowOf(answer)?.down !== undefined]).toEqual([type, true]);
    }
  });
  test('each family of rules is named by a row, or is about every frame', () => {
    const families = (ids: Iterable<string>) => new Set([...ids].map((id) => id.replace(/\d+$/, '')));
    const named = families(frameTypes.flatMap((type) => rowOf(type)!.rules));
    const general = new Set(['ENV', 'CLS', 'ORD', 'OUT', 'LIM']);
    for (const family of families(rules.map((rule) => rule.id)))
      expect([family, named.has(family) || general.has(family)]).toEqual([family, true]);
  });
  test('rule ids count from 1 without a gap', () => {
    const counts = new Map<string, number>();
    for (const { id } of rules) {
      const [, family, n] = /^([A-Z]{3})(\d+)$/.exec(id)!;
      expect([id, Number(n)]).toEqual([id, (counts.get(family!) ?? 0) + 1]);
      counts.set(family!, Number(n));
    }
  });
  test('one fixture per type and side, and no other', () => {
    expect([...fixtures.keys()].sort()).toEqual(said.map(({ name }) => name).sort());
    for (const [name, frame] of fixtures) expect(name.endsWith(`.${frame.type}`)).toBe(true);
  });
});

describe('fixtures', () => {
  test.each(said)('$name fits its schema and its rules', ({ side, name, type }) => {
    const { payload, chat_id } = fixtures.get(name)!;
    expect(payloadFault(side, type, payload, { chat_id: chat_id as string | undefined })).toBeUndefined();
  });
  test.each(said.filter(({ side }) => side === 'up'))('$name: what decode gives is what encode wrote', ({ name }) => {
    const fixture = fixtures.get(name)!;
    const decoded = decode(textOf(encode(fixture as unknown as UpFrame)));
    // A chat_id of the payload is lifted into the envelope.
    const { chat_id } = fixture.payload;
    expect(decoded.kind === 'frame' && decoded.frame).toEqual(chat_id === undefined ? fixture : { ...fixture, chat_id });
  });
  test.each(said.filter(({ side }) => side === 'agent_up'))('$name: what decode gives is what encode wrote', ({ name }) => {
    const fixture = fixtures.get(name)!;
    const decoded = decodeAgent(textOf(encode(fixture as unknown as UpFrame)));
    expect(decoded.kind === 'frame' && decoded.frame).toEqual(fixture);
  });
  test.each(said.filter(({ side }) => side === 'down'))('$name: id and cursor can be spliced in', ({ name }) => {
    const { id, ...frame } = fixtures.get(name)!;
    const bytes = splice(encode(frame as unknown as DownFrame), { cursor: 7, id: 'r"1' });
    expect(JSON.parse(textOf(bytes))).toEqual({ v: 1, id: 'r"1', cursor: 7, ...frame });
    expect(textOf(bytes)).toMatch(/^\{"v":1,/);
  });
});

describe('JSON Schema', () => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTypes: false, strictRequired: false });
  const document = jsonSchema();
  ajv.addSchema(document);
  const urn = document.$id as string;
  const validate = (name: string) => ajv.getSchema(`${urn}#/$defs/${name}`)!;

  test('it is a valid document, and every fixture fits it', () => {
    for (const { name, side } of said) {
      expect([name, validate(name)(fixtures.get(name)), validate(name).errors]).toEqual([name, true, null]);
      expect([name, validate(sideNames[side])(fixtures.get(name))]).toEqual([name, true]);
    }
    expect(ajv.validate(urn, { type: 'nonsense' })).toBe(false);
  });

  test('another validator says the same of fixtures with anything changed in them', () => {
    const anything = fc.oneof(
      fc.constantFrom<unknown>(null, true, -1, 0, 1.5, 2 ** 60, '', 'x', '😀'.repeat(70), 'y'.repeat(600), [], {}, ['a'], { a: 1 }),
      fc.jsonValue({ maxDepth: 1 }),
    );
    // The same object each time: ajv compiles it once.
    const plainSchemas = new Map(said.map(({ name, row }) => [name, plain(row.schema)]));
    const change = fc.record({ at: fc.nat(40), value: fc.option(anything, { nil: undefined }) });
    fc.assert(
      fc.property(fc.constantFrom(...said), fc.array(change, { minLength: 1, maxLength: 3 }), ({ side, name, type, row }, changes) => {
        const payload = changes.reduce<unknown>(changed, structuredClone(fixtures.get(name)!.payload));
        const ours = payloadFault(side, type, payload, { chat_id: 'c' });
        const theirs = ajv.compile(plainSchemas.get(name)!)(payload);
        // A rule beyond the schema may refuse what fits it, never the reverse.
        if (ours === undefined || row.refine === undefined) expect([name, payload, theirs]).toEqual([name, payload, ours === undefined]);
        if (ours !== undefined) expect(ours).toMatch(/^[^:]{1,200}: ./);
      }),
      { numRuns: 3_000 },
    );
  });
});

test('AsyncAPI: a real parser accepts the document, and finds fault with a broken one', async () => {
  const parser = new Parser();
  const document = asyncApi({ fixtures, rules });
  const severe = async (source: unknown) => (await parser.parse(JSON.stringify(source))).diagnostics.filter((one) => one.severity === 0);
  expect(await severe(document)).toEqual([]);
  expect(await severe({ ...document, channels: { devices: { address: 5 } } })).not.toEqual([]);
  const parsed = (await parser.parse(JSON.stringify(document))).document!;
  expect(parsed.operations().all()).toHaveLength(said.length);
  expect(
    parsed
      .channels()
      .all()
      .map((one) => one.address()),
  ).toEqual(['/ws', '/agent']);
}, 60_000);

/** Replaces (or, without a value, removes) the n-th place of a JSON value, counted through its objects and arrays. */
function changed(whole: unknown, { at, value }: { at: number; value?: unknown }): unknown {
  let left = at;
  const visit = (one: unknown): unknown => {
    if (left-- === 0) return value;
    if (Array.isArray(one)) return one.map(visit).filter((item) => item !== undefined);
    if (typeof one === 'object' && one !== null)
      return Object.fromEntries(
        Object.entries(one)
          .map(([key, inner]) => [key, visit(inner)] as const)
          .filter(([, inner]) => inner !== undefined),
      );
    return one;
  };
  const result = visit(whole);
  return result === undefined ? {} : result;
}
