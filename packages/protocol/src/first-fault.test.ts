import { expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { firstFault } from './first-fault.js';
import type { FrameRow } from './frame-row.js';
import { frameTable } from './frame-table.js';

const known = new Set(
  'type properties required patternProperties items anyOf enum const minLength maxLength minItems maxItems minimum maximum'.split(' '),
);

test('the schemas of the table use no keyword that it does not know', () => {
  const keywords = new Set<string>();
  const visit = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return;
    for (const [keyword, value] of Object.entries(schema)) {
      keywords.add(keyword);
      if (keyword === 'properties' || keyword === 'patternProperties') Object.values(value as object).forEach(visit);
      else if (keyword === 'items') visit(value);
      else if (keyword === 'anyOf') (value as unknown[]).forEach(visit);
    }
  };
  for (const row of Object.values(frameTable as Record<string, FrameRow>))
    for (const side of [row.up, row.down, row.agent_up, row.agent_down]) visit(side?.schema);
  expect([...keywords].filter((keyword) => !known.has(keyword))).toEqual([]);
});

test('it names the place, down through objects, lists and alternatives', () => {
  const Schema = Type.Object({
    list: Type.Array(Type.Object({ name: Type.String({ minLength: 1, maxLength: 2 }) }), { minItems: 1 }),
    either: Type.Optional(Type.Union([Type.String({ maxLength: 2 }), Type.Null()])),
    kind: Type.Optional(Type.Enum(['a', 'b'])),
    yes: Type.Optional(Type.Literal(true)),
    counts: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0, maximum: 9 }))),
  });
  const good = { list: [{ name: 'x' }] };
  const faults: [unknown, string | undefined][] = [
    [good, undefined],
    [5, 'payload: must be an object'],
    [{}, 'list: missing'],
    [{ list: [] }, 'list: must have at least 1 items'],
    [{ list: [{ name: 'x' }, {}] }, 'list[1].name: missing'],
    [{ list: [{ name: '' }] }, 'list[0].name: must not be empty'],
    [{ list: [{ name: '😀😀' }] }, undefined],
    [{ list: [{ name: '😀😀😀' }] }, 'list[0].name: must have at most 2 characters'],
    [{ ...good, either: 5 }, 'either: must be string or null'],
    [{ ...good, either: 'long' }, 'either: must have at most 2 characters'],
    [{ ...good, either: null }, undefined],
    [{ ...good, kind: 'c' }, 'kind: must be one of a, b'],
    [{ ...good, yes: false }, 'yes: must be true'],
    [{ ...good, counts: { a: 1, b: 10 } }, 'counts.b: must be at most 9'],
    [{ ...good, counts: { a: 1.5 } }, 'counts.a: must be an integer'],
    [{ ...good, constructor: 1, __proto__: { list: 5 } }, undefined],
  ];
  for (const [value, fault] of faults) expect([value, firstFault(Schema, value)]).toEqual([value, fault]);
});

test('it stops at the first: what is wrong a hundred thousand times is looked at once', () => {
  let looked = 0;
  const items = new Proxy(Array<number>(100_000).fill(1), {
    get(target, key, receiver) {
      if (typeof key === 'string' && /^\d+$/.test(key)) looked++;
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  expect(firstFault(Type.Array(Type.String()), items)).toBe('[0]: must be a string');
  expect(looked).toBe(1);
});
