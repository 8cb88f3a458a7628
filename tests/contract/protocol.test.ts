import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Parser } from '@asyncapi/parser';
import {
  closeCodes,
  type DownFrame,
  decode,
  decodeAgent,
  encode,
  errorCodes,
  frameTypes,
  payloadFault,
  rowOf,
  splice,
  type UpFrame,
} from '@iris/protocol';
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
  test('OUT1, OUT3, OUT5, OUT6, LNK8, LNK9, LNK10: the classes that the rules list are the classes of the table', () => {
    /** Names in backticks of a rule; `picker.*` stands for every type that begins so and that `from` has. */
    const listed = (id: string, from: readonly string[]): Set<string> => {
      const names = [...rules.find((rule) => rule.id === id)!.text.matchAll(/`([a-z._*]+)`/g)].map(([, name]) => name!);
      return new Set(names.flatMap((name) => (name.endsWith('.*') ? from.filter((type) => type.startsWith(name.slice(0, -1))) : [name])));
    };
    const down = (...classes: string[]) => saidBy('down').flatMap(({ type, frame }) => (classes.includes(frame.down!.class) ? [type] : []));
    const link = (side: 'agent_up' | 'agent_down', durable: boolean) =>
      saidBy(side).flatMap(({ type, frame }) => (frame[side]!.durable === durable ? [type] : []));
    expect(listed('OUT1', down('durable'))).toEqual(new Set(down('durable')));
    expect(listed('OUT3', [])).toEqual(new Set(down('coalesced')));
    // A read receipt is durable for the other devices, and live for the sender.
    expect(listed('OUT5', [])).toEqual(new Set([...down('live'), 'read.receipt']));
    const acksAndEnds = down('response').filter((type) => !type.startsWith('media.') || /\.(ack|end)$/.test(type));
    expect(listed('OUT6', acksAndEnds)).toEqual(new Set(down('response')));
    expect(listed('LNK8', link('agent_down', true))).toEqual(new Set(link('agent_down', true)));
    expect(listed('LNK9', link('agent_up', true))).toEqual(new Set(link('agent_up', true)));
    for (const type of listed('LNK10', []))
      if (type !== 'seq') expect([type, link('agent_up', false).includes(type)]).toEqual([type, true]);
  });
  test('CLS1, CLS2, CLS3, CLS4, CLS5, CLS6, CLS7, CLS8, CLS9, CLS10: the close codes that the rules list are those of the code', () => {
    const listed = rules.flatMap(({ id, text }) => (id.startsWith('CLS') ? [Number(/^\d{4}/.exec(text)![0])] : []));
    expect(listed.sort()).toEqual(Object.values(closeCodes).sort());
  });
  test('ERR2: six codes, and no others', () => {
    const listed = [...rules.find(({ id }) => id === 'ERR2')!.text.matchAll(/`([a-z_]+)`/g)].map(([, code]) => code);
    expect(listed).toEqual([...errorCodes]);
    for (const code of errorCodes) expect(payloadFault('down', 'error', { code, message: 'x' })).toBeUndefined();
    expect(payloadFault('down', 'error', { code: 'forbidden', message: 'x' })).toMatch(/^code:/);
  });
  test('PSH2: worth a push are finals, notifications and pickers, and nothing else', () => {
    const pushed = saidBy('down').flatMap(({ type, frame }) => (frame.down!.push === undefined ? [] : [type]));
    const pickers = ['model', 'choice', 'clarify', 'approval', 'confirm'].map((kind) => `picker.${kind}`);
    expect(pushed.sort()).toEqual(['message', 'message.stop', 'notification', ...pickers].sort());
  });
  test('PIC1, PIC3, PIC4, PIC5, PIC6: pickers carry what each kind needs, and may carry more', () => {
    const whole = (kind: string) => fixtures.get(`device-down.picker.${kind}`)!.payload;
    const without = (kind: string, ...names: string[]) =>
      Object.fromEntries(Object.entries(whole(kind)).filter(([name]) => !names.includes(name)));
    const fault = (kind: string, payload: unknown) => payloadFault('down', `picker.${kind}`, payload);
    for (const kind of ['model', 'choice', 'clarify', 'approval', 'confirm']) {
      expect(fault(kind, { ...whole(kind), title: 'T', body: 'B', expires_at: 1, more: { of: 'it' } })).toBeUndefined();
      expect(fault(kind, without(kind, 'title', 'body', 'expires_at'))).toBeUndefined();
      expect(fault(kind, without(kind, 'picker_id'))).toBe('picker_id: missing');
      expect(fault(kind, { ...whole(kind), expires_at: 'soon' })).toMatch(/^expires_at:/);
    }
    for (const kind of ['choice', 'approval', 'confirm']) {
      expect(fault(kind, without(kind, 'choices'))).toBe('choices: missing');
      expect(fault(kind, { ...whole(kind), choices: [{ value: 'x' }] })).toBe('choices[0].label: missing');
    }
    expect(fault('clarify', without('clarify', 'choices', 'allow_text', 'multi'))).toBeUndefined();
    expect(fault('model', without('model', 'providers'))).toBe('providers: missing');
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
        // A name of the sender's may have any character in it.
        if (ours !== undefined) expect(ours).toMatch(/^(?!payload: does not fit).{1,200}?: ./s);
      }),
      { numRuns: 3_000 },
    );
  });
});

test('AsyncAPI: a real parser accepts the document, and finds fault with a broken one', async () => {
  const parser = new Parser();
  const parse = async (source: unknown) => {
    const { document, diagnostics } = await parser.parse(JSON.stringify(source));
    return { document, errors: diagnostics.filter((one) => one.severity === 0) };
  };
  const { document, errors } = await parse(asyncApi({ fixtures, rules }));
  expect(errors).toEqual([]);
  expect(document!.operations().all()).toHaveLength(said.length);
  const channels = document!.channels().all();
  expect(channels.map((one) => one.address())).toEqual(['/ws', '/agent']);
  const broken = { asyncapi: '3.0.0', info: { title: 'x', version: '1' }, channels: { devices: { address: 5 } } };
  expect((await parse(broken)).errors).not.toEqual([]);
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
