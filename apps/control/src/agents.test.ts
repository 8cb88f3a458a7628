import { type Control, memoryHub, subjects } from '@iris/bus';
import type { AgentId, TenantId } from '@iris/protocol';
import { sealing, silentLog } from '@iris/runtime';
import { type ManualClock, manualClock, seededRandom } from '@iris/runtime/testing';
import { memoryStore, type Store, tokenHash } from '@iris/store';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Api, buildApi, sealedFor } from './index.js';
import { testConfig } from './testing/config.js';

const sealing_secret = ['the sealing secret of these tests'];
let api: Api;
let url: string;
let store: Store;
let clock: ManualClock;
let heard: Control[];
let tenant: { tenant_id: TenantId; agent_id: AgentId };

async function begin(more: Parameters<typeof testConfig>[0]) {
  clock = manualClock();
  store = memoryStore(clock);
  heard = [];
  const hub = memoryHub({ clock, deliver: ({ run }) => run() });
  hub.connect().subscribe(subjects.control, (data) => void heard.push(JSON.parse(Buffer.from(data).toString()) as Control));
  api = await buildApi({ store, bus: hub.connect(), clock, random: seededRandom(7), log: silentLog }, testConfig(more));
  url = await api.listen({ port: 0, host: '127.0.0.1' });
  tenant = (await call('POST', '/v1/tenants', { name: 'Home' })).body as never;
}
beforeEach(() => begin({ sealing_secret }));
afterEach(() => api.close());

interface Body extends Record<string, unknown> {
  readonly error: { readonly code: string; readonly message: string };
}
async function call(method: string, path: string, payload?: unknown): Promise<{ status: number; body: Body; text: string }> {
  const headers = {
    authorization: 'Bearer admin-token-of-the-test',
    ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const response = await fetch(`${url}${path}`, { method, headers, ...(payload === undefined ? {} : { body: JSON.stringify(payload) }) });
  const text = await response.text();
  return { status: response.status, text, body: (text === '' ? {} : JSON.parse(text)) as Body };
}
const of = (rest: string) => `/v1/tenants/${tenant.tenant_id}/${rest}`;
const makeAgent = async (more: object = {}) =>
  (await call('POST', of('agents'), { name: 'Second', ...more })).body as unknown as { agent_id: AgentId };
const secretsOf = async (agent_id: AgentId) => {
  const row = (await store.agentBackends.list(tenant.tenant_id)).find((one) => one.agent_id === agent_id)!;
  return JSON.parse(sealing(sealing_secret, seededRandom(1)).open(row.sealed, sealedFor(row))!) as { token: string; key?: string };
};

describe('LNK17: agents and the channels that are bound to them', () => {
  test('a channel is bound, listed, and bound to the default agent again; everyone is told', async () => {
    const { agent_id } = await makeAgent();
    heard.length = 0;
    expect((await call('PATCH', of('channels/android%3Adefault'), { agent_id })).body).toMatchObject({
      chat_id: 'android:default',
      agent_id,
    });
    expect((await call('GET', of('channels'))).body).toEqual({
      channels: [
        {
          chat_id: 'android:default',
          thread_id: null,
          kind: 'default',
          name: 'Default',
          is_default: true,
          agent_id,
          created_at: expect.any(Number),
        },
      ],
    });
    expect((await call('PATCH', of('channels/android%3Adefault'), { agent_id: null })).body).toMatchObject({ agent_id: null });
    expect(heard).toEqual([
      { kind: 'rerouted', tenant_id: tenant.tenant_id },
      { kind: 'rerouted', tenant_id: tenant.tenant_id },
    ]);
    for (const [chat, wanted, message] of [
      ['android:chan_9', agent_id, 'channel unknown'],
      ['android:default', 'ag_never', 'agent unknown'],
    ]) {
      const { status, body } = await call('PATCH', of(`channels/${encodeURIComponent(chat!)}`), { agent_id: wanted });
      expect([status, body.error]).toEqual([404, { code: 'not_found', message }]);
    }
    expect((await call('PATCH', of('channels/android%3Adefault'), {})).status).toBe(400);
  });

  test('an agent is removed: its tokens and its link go, its channels are the default agent’s; the default one stays', async () => {
    const { agent_id } = await makeAgent({ backend: { kind: 'demo' } });
    await call('PATCH', of('channels/android%3Adefault'), { agent_id });
    const before = (await store.tokens.list(tenant.tenant_id)).filter((token) => token.agent_id === agent_id);
    expect(before).toHaveLength(2);
    heard.length = 0;
    expect((await call('DELETE', of(`agents/${agent_id}`))).status).toBe(204);
    expect(heard).toEqual([
      ...before.map(({ token_id }) => ({ kind: 'revoked', tenant_id: tenant.tenant_id, token_id })),
      { kind: 'rerouted', tenant_id: tenant.tenant_id },
    ]);
    expect((await store.tokens.list(tenant.tenant_id)).filter((token) => token.agent_id === agent_id && token.revoked_at === null)).toEqual(
      [],
    );
    expect((await store.channels.list(tenant.tenant_id))[0]?.agent_id).toBeNull();
    expect(await store.agentBackends.list(tenant.tenant_id)).toEqual([]);
    expect((await call('DELETE', of(`agents/${agent_id}`))).status).toBe(404);
    const { status, body } = await call('DELETE', of(`agents/${tenant.agent_id}`));
    expect([status, body.error.message]).toEqual([400, 'agent: it is the default one; make another the default first']);
    expect(await store.agents.list(tenant.tenant_id)).toHaveLength(1);
  });
});

describe('backends', () => {
  test('what an agent answers with is shown, its key never; both it and the runner’s token are sealed', async () => {
    const backend = { kind: 'openai', url: 'https://models.example/v1', key: 'sk-secret', model: 'large', history_chars: 0 };
    const { agent_id } = await makeAgent({ backend });
    const shown = { kind: 'openai', url: backend.url, model: 'large', history_chars: 0, has_key: true, waits: false };
    const { body, text } = await call('GET', of('agents'));
    expect(body.agents).toMatchObject([{ backend: null }, { agent_id, backend: shown }]);
    expect(text).not.toContain('sk-secret');
    const [row] = await store.agentBackends.list(tenant.tenant_id);
    expect(JSON.stringify(row)).not.toContain('sk-secret');
    const { token, key } = await secretsOf(agent_id);
    expect(key).toBe('sk-secret');
    expect(await store.tokens.find(tenant.tenant_id, tokenHash(token))).toMatchObject({
      agent_id,
      kind: 'agent',
      token_id: row!.token_id,
      label: 'runner',
    });
    expect((await call('GET', of('audit'))).text).not.toContain('sk-secret');
  });

  test('a change keeps the token, and the key as long as it goes to the same place', async () => {
    const { agent_id } = await makeAgent({ backend: { kind: 'openai', url: 'https://models.example/v1', key: 'k1' } });
    const { token } = await secretsOf(agent_id);
    const change = async (backend: unknown) => {
      const { status, body } = await call('PATCH', of(`agents/${agent_id}`), { backend });
      expect(status).toBe(200);
      return { shown: body.backend, secrets: await secretsOf(agent_id) };
    };
    expect(await change({ kind: 'openai', url: 'https://models.example/v2', model: 'm' })).toEqual({
      shown: { kind: 'openai', url: 'https://models.example/v2', model: 'm', has_key: true, waits: false },
      secrets: { token, key: 'k1' },
    });
    expect((await change({ kind: 'openai', url: 'https://elsewhere.example/v1' })).secrets).toEqual({ token });
    expect((await change({ kind: 'openai', url: 'https://elsewhere.example/v1', key: 'k2' })).secrets).toEqual({ token, key: 'k2' });
    expect((await change({ kind: 'hermes', url: 'https://elsewhere.example' })).secrets).toEqual({ token });
    await change({ kind: 'hermes', url: 'https://elsewhere.example', key: 'k3' });
    expect((await change({ kind: 'hermes', url: 'https://elsewhere.example', key: null })).secrets).toEqual({ token });
    await call('DELETE', of(`tokens/${(await store.agentBackends.list(tenant.tenant_id))[0]!.token_id}`));
    const { secrets } = await change({ kind: 'demo' });
    expect(secrets.token).not.toBe(token);
    heard.length = 0;
    const { token_id } = (await store.agentBackends.list(tenant.tenant_id))[0]!;
    expect((await call('PATCH', of(`agents/${agent_id}`), { backend: null })).body).toMatchObject({ backend: null });
    expect(heard[0]).toEqual({ kind: 'revoked', tenant_id: tenant.tenant_id, token_id });
    expect(await store.agentBackends.list(tenant.tenant_id)).toEqual([]);
  });

  test.each([
    ['an address inside', { kind: 'openai', url: 'http://127.0.0.1:11434/v1' }, 'backend.url: 127.0.0.1 is a private address'],
    ['one in disguise', { kind: 'hermes', url: 'http://[::ffff:10.0.0.1]/' }, /private address/],
    ['credentials in the address', { kind: 'openai', url: 'https://user:password@models.example' }, /name or a password/],
    ['no address', { kind: 'openai', url: 'https://' }, /backend/],
    ['another scheme', { kind: 'openai', url: 'file:///etc/passwd' }, /backend/],
    ['none given', { kind: 'openai' }, /backend/],
    ['a backend there is not', { kind: 'magic' }, /backend/],
    ['a field there is not', { kind: 'demo', allow_hosts: ['x'] }, /backend/],
  ])('%s is refused, and nothing changes', async (_, backend, why) => {
    for (const [method, path, body] of [
      ['POST', of('agents'), { name: 'x', backend }],
      ['PATCH', of(`agents/${tenant.agent_id}`), { name: 'x', backend }],
    ] as const) {
      const { status, body: answer } = await call(method, path, body);
      expect([status, answer.error.code]).toEqual([400, 'unsupported']);
      expect(answer.error.message).toMatch(why);
    }
    expect(await store.agents.list(tenant.tenant_id)).toMatchObject([{ name: 'Default' }]);
    expect(await store.agentBackends.list(tenant.tenant_id)).toEqual([]);
  });

  test('one that cannot be opened any more gets a new token, and the old one opens nothing', async () => {
    const { agent_id } = await makeAgent({ backend: { kind: 'demo' } });
    const row = (await store.agentBackends.list(tenant.tenant_id))[0]!;
    const other = sealing(['the secret that is not used any more'], seededRandom(2));
    await store.agentBackends.set({ ...row, sealed: other.seal('{"token":"it leaked"}', sealedFor(row)) });
    heard.length = 0;
    expect((await call('PATCH', of(`agents/${agent_id}`), { backend: { kind: 'demo' } })).status).toBe(200);
    expect((await store.tokens.list(tenant.tenant_id)).find(({ token_id }) => token_id === row.token_id)?.revoked_at).not.toBeNull();
    expect(heard).toContainEqual({ kind: 'revoked', tenant_id: tenant.tenant_id, token_id: row.token_id });
    const { token } = await secretsOf(agent_id);
    const now = (await store.agentBackends.list(tenant.tenant_id))[0]!;
    expect([now.token_id === row.token_id, (await store.tokens.find(tenant.tenant_id, tokenHash(token)))?.token_id]).toEqual([
      false,
      now.token_id,
    ]);
  });

  test('without a secret to seal with there are none; hosts and ranges that the operator allows', async () => {
    await api.close();
    await begin({});
    const { body } = await call('PATCH', of(`agents/${tenant.agent_id}`), { backend: { kind: 'demo' } });
    expect(body.error).toEqual({ code: 'unsupported', message: 'backend: this gateway has no sealing_secret, so it keeps none' });
    await api.close();
    await begin({ sealing_secret, allow_hosts: ['*.example'], allow_addresses: ['10.1.0.0/16'] });
    const tried = async (address: string) =>
      (await call('PATCH', of(`agents/${tenant.agent_id}`), { backend: { kind: 'openai', url: address } })).status;
    expect([
      await tried('https://models.example'),
      await tried('http://10.1.2.3'),
      await tried('https://elsewhere.test'),
      await tried('http://10.2.0.1'),
    ]).toEqual([200, 200, 400, 400]);
  });
});
