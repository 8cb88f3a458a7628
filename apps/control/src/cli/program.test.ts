import { expect, test } from '@jest/globals';
import { program } from './program.js';

/** What one command line asks of the API, and what it prints. */
async function iris(line: string, answers: unknown[] = [{ ok: 1 }]) {
  const calls: unknown[][] = [];
  const printed: string[] = [];
  const iris = program({
    print: (text) => printed.push(text),
    call: async (...request) => {
      calls.push(request);
      return answers[Math.min(calls.length, answers.length) - 1];
    },
  });
  for (const command of [iris, ...iris.commands.flatMap((group) => [group, ...group.commands])]) {
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
  }
  await iris.parseAsync(line.split(' '), { from: 'user' });
  return { calls, printed };
}

test.each<[string, unknown[]]>([
  ['tenants create Home', ['POST', '/v1/tenants', { name: 'Home' }]],
  ['tokens create t1', ['POST', '/v1/tenants/t1/tokens', { kind: 'device' }]],
  ['tokens create t1 --kind device --device-id dev_1', ['POST', '/v1/tenants/t1/tokens', { kind: 'device', device_id: 'dev_1' }]],
  ['tokens create t1 --kind agent --agent-id ag_1', ['POST', '/v1/tenants/t1/tokens', { kind: 'agent', agent_id: 'ag_1' }]],
  ['tokens list t1', ['GET', '/v1/tenants/t1/tokens']],
  ['tokens revoke t1 tk_1', ['DELETE', '/v1/tenants/t1/tokens/tk_1']],
  ['devices list t1', ['GET', '/v1/tenants/t1/devices']],
  ['devices revoke t1 a/b', ['DELETE', '/v1/tenants/t1/devices/a%2Fb']],
  ['quotas set t1 devices=3 channels=9', ['PATCH', '/v1/tenants/t1/quotas', { devices: 3, channels: 9 }]],
])('iris %s', async (line, request) => {
  const { calls, printed } = await iris(line);
  expect(calls).toEqual([request]);
  expect(printed).toEqual(['{\n  "ok": 1\n}\n']);
});

test('iris tenants list goes through every page', async () => {
  const { calls, printed } = await iris('tenants list', [{ tenants: [{ tenant_id: 'a' }, { tenant_id: 'b' }] }, { tenants: [] }]);
  expect(calls).toEqual([
    ['GET', '/v1/tenants?limit=1000'],
    ['GET', '/v1/tenants?limit=1000&after=b'],
  ]);
  expect(JSON.parse(printed.join(''))).toEqual({ tenants: [{ tenant_id: 'a' }, { tenant_id: 'b' }] });
});

test.each(['quotas set t1 devices', 'quotas set t1 devices=-1', 'tokens create t1 --kind admin', 'tokens revoke t1', 'nothing'])(
  'iris %s is refused',
  async (line) => {
    await expect(iris(line)).rejects.toThrow();
  },
);
