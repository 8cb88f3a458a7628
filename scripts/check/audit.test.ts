import { expect, test } from '@jest/globals';
// @ts-expect-error a script without types
import { auditOf as untyped } from './audit.mjs';

const auditOf = untyped as (stdout: string) => { faults: string[]; note: string | undefined };
const known = (severity: string) => ({
  name: 'left-pad',
  severity,
  range: '<1.3.1',
  via: [],
  effects: [],
  nodes: [],
  isDirect: true,
  fixAvailable: true,
});
const answer = (...severities: string[]) =>
  JSON.stringify({
    auditReportVersion: 2,
    vulnerabilities: Object.fromEntries(severities.map((severity, n) => [`p${n}`, known(severity)])),
    metadata: {},
  });

test('what is high or critical is a fault that names the package; what is less is none', () => {
  expect(auditOf(answer('critical', 'high', 'moderate', 'low'))).toEqual({
    faults: ['left-pad <1.3.1: critical, see npm audit', 'left-pad <1.3.1: high, see npm audit'],
    note: undefined,
  });
  expect(auditOf(answer('moderate'))).toEqual({ faults: [], note: undefined });
  expect(auditOf(answer())).toEqual({ faults: [], note: undefined });
});

test.each([
  [
    'a registry that keeps no such list',
    JSON.stringify({ message: 'Method Not Allowed', method: 'POST', statusCode: 405, body: {} }),
    'it answered 405',
  ],
  ['one that is not there', JSON.stringify({ message: 'request to https://x failed, reason: connect ECONNREFUSED' }), 'ECONNREFUSED'],
  [
    'npm’s own words for it',
    JSON.stringify({ error: { code: 'ENOAUDIT', summary: 'no audit endpoint', detail: '' } }),
    'no audit endpoint',
  ],
  ['no answer in time', '', 'it did not answer'],
  ['an answer that is no JSON', '<html>502</html>', 'it did not answer'],
  ['JSON that is no object', 'null', 'it did not answer'],
])('%s: a line says so, and nothing is red', (_, stdout, why) => {
  const { faults, note } = auditOf(stdout);
  expect(faults).toEqual([]);
  expect(note).toContain(why);
  expect(note).toContain('nothing is known');
  expect(note).not.toContain('\n');
});
