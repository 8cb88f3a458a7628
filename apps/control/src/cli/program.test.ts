import { expect, test } from '@jest/globals';
import { readQr } from '../testing/qr.js';
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
  [
    'tokens create t1 --kind admin --role read-only --label x',
    ['POST', '/v1/tenants/t1/tokens', { kind: 'admin', role: 'read-only', label: 'x' }],
  ],
  ['tokens rotate t1 tk_1 --overlap-ms 5', ['POST', '/v1/tenants/t1/tokens/tk_1/rotate', { overlap_ms: 5 }]],
  ['tenants show t1', ['GET', '/v1/tenants/t1']],
  ['tenants suspend t1', ['PATCH', '/v1/tenants/t1', { state: 'suspended' }]],
  ['tenants resume t1', ['PATCH', '/v1/tenants/t1', { state: 'active' }]],
  ['tenants delete t1 --yes t1', ['DELETE', '/v1/tenants/t1']],
  ['devices rename t1 d Kitchen', ['PATCH', '/v1/tenants/t1/devices/d', { label: 'Kitchen' }]],
  ['devices pushes t1 d --limit 5 --before 9', ['GET', '/v1/tenants/t1/devices/d/pushes?limit=5&before=9']],
  ['agents list t1', ['GET', '/v1/tenants/t1/agents']],
  ['agents create t1 Second --default', ['POST', '/v1/tenants/t1/agents', { name: 'Second', is_default: true }]],
  ['agents rename t1 ag_1 First', ['PATCH', '/v1/tenants/t1/agents/ag_1', { name: 'First' }]],
  ['agents default t1 ag_1', ['PATCH', '/v1/tenants/t1/agents/ag_1', { is_default: true }]],
  ['agents backend t1 ag_1 demo', ['PATCH', '/v1/tenants/t1/agents/ag_1', { backend: { kind: 'demo' } }]],
  ['agents backend t1 ag_1 none', ['PATCH', '/v1/tenants/t1/agents/ag_1', { backend: null }]],
  [
    'agents backend t1 ag_1 openai https://x/v1 --key k --model m',
    ['PATCH', '/v1/tenants/t1/agents/ag_1', { backend: { kind: 'openai', url: 'https://x/v1', key: 'k', model: 'm' } }],
  ],
  [
    'agents backend t1 ag_1 hermes https://x --no-key',
    ['PATCH', '/v1/tenants/t1/agents/ag_1', { backend: { kind: 'hermes', url: 'https://x', key: null } }],
  ],
  ['agents remove t1 ag_1', ['DELETE', '/v1/tenants/t1/agents/ag_1']],
  ['channels list t1', ['GET', '/v1/tenants/t1/channels']],
  ['channels bind t1 android:chan_2 ag_1', ['PATCH', '/v1/tenants/t1/channels/android%3Achan_2', { agent_id: 'ag_1' }]],
  ['channels bind t1 android:chan_2', ['PATCH', '/v1/tenants/t1/channels/android%3Achan_2', { agent_id: null }]],
  ['usage t1 --from 2026-01-01', ['GET', '/v1/tenants/t1/usage?from=2026-01-01']],
  ['audit t1 --limit 3', ['GET', '/v1/tenants/t1/audit?limit=3']],
  ['audit', ['GET', '/v1/audit']],
  ['trace m_1 --tenant t1', ['GET', '/v1/tenants/t1/messages/m_1/trace']],
  ['pair t1 --json --label x', ['POST', '/v1/tenants/t1/pairings', { label: 'x' }]],
  ['push explain t1 --device dev/1 --cursor 7', ['GET', '/v1/tenants/t1/devices/dev%2F1/push/7']],
  ['push explain t1 --device dev_1', ['GET', '/v1/tenants/t1/devices/dev_1/push']],
  ['push content t1', ['GET', '/v1/tenants/t1/push']],
  ['push content t1 ids', ['PATCH', '/v1/tenants/t1/push', { content: 'ids' }]],
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

test('iris push explain without a tenant is about the only one there is', async () => {
  const { calls } = await iris('push explain --device d', [{ tenants: [{ tenant_id: 'a' }] }, { explanation: '…' }]);
  expect(calls.at(-1)).toEqual(['GET', '/v1/tenants/a/devices/d/push']);
  await expect(iris('push explain --device d', [{ tenants: [{ tenant_id: 'a' }, { tenant_id: 'b' }] }])).rejects.toThrow('several tenants');
});

test.each([
  'quotas set t1 devices',
  'quotas set t1 devices=-1',
  'tokens create t1 --kind root',
  'tenants delete t1',
  'tenants delete t1 --yes t2',
  'tokens revoke t1',
  'nothing',
])('iris %s is refused', async (line) => {
  await expect(iris(line)).rejects.toThrow();
});

test('iris pair shows the link as a QR code and as text, and the code', async () => {
  const link = 'iris://pair?code=ABCD-EFGH-JKMN&gateway=wss%3A%2F%2Fgateway.example%2Fws';
  const { printed } = await iris('pair t1', [{ code: 'ABCD-EFGH-JKMN', link }]);
  expect(readQr(printed.join(''))).toBe(link);
  const lines = printed.join('').split('\n');
  expect(lines).toContain(link);
  expect(lines).toContain('or type the code: ABCD-EFGH-JKMN');
});

test('iris trace without a tenant asks each in turn', async () => {
  const { calls } = await iris('trace m_1', [{ tenants: [{ tenant_id: 'a' }] }, { tenants: [] }, { cursor: 4 }]);
  expect(calls.at(-1)).toEqual(['GET', '/v1/tenants/a/messages/m_1/trace']);
});
