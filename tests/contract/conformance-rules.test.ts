import { coverage, specRules } from '@iris/testkit/conformance';
import { expect, test } from '@jest/globals';

test('every rule of SPEC.md is asked about, watched, or said to be out of sight, with a reason; and nothing else is', () => {
  const rules = specRules().map(({ id }) => id);
  const { checked, outside } = coverage();
  expect(rules.filter((id) => !checked.has(id) && !outside.has(id))).toEqual([]);
  expect([...checked, ...outside.keys()].filter((id) => !rules.includes(id))).toEqual([]);
  expect([...outside.keys()].filter((id) => checked.has(id))).toEqual([]);
  for (const why of outside.values()) expect(why.length).toBeGreaterThan(10);
});
