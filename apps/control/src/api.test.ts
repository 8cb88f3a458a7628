import { type Control, memoryHub, subjects } from '@iris/bus';
import { type ChatId, type DeviceId, defaultQuotas, type TenantId, type TokenId } from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { manualClock, seededRandom } from '@iris/runtime/testing';
import { memoryStore, type Store, tokenHash } from '@iris/store';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Api, buildApi } from './index.js';
import { testConfig } from './testing/config.js';

const admin_token = 'admin-token-of-the-test';
let api: Api;
let store: Store;
let heard: Control[];
let url: string;

beforeEach(async () => {
  const clock = manualClock();
  const hub = memoryHub({ clock, deliver: ({ run }) => run() });
  store = memoryStore();
  heard = [];
  hub.connect().subscribe(subjects.control, (data) => heard.push(JSON.parse(Buffer.from(data).toString()) as Control));
  api = await buildApi({ store, bus: hub.connect(), clock, random: seededRandom(7), log: silentLog }, testConfig({ admin_token }));
  url = await api.listen({ port: 0, host: '127.0.0.1' });
});
afterEach(() => api.close());

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
async function send(method: Method, path: string, payload: string | undefined, headers: Record<string, string>) {
  const response = await fetch(`${url}${path}`, { method, headers, ...(payload === undefined ? {} : { body: payload }) });
  return { status: response.status, text: await response.text() };
}
/** Everything that any answer holds; each test looks at its own part. */
interface Body
  extends Record<'tenant_id' | 'device_token' | 'agent_token' | 'agent_id' | 'token_id' | 'token' | 'name' | 'explanation', string> {
  readonly decisions: readonly Record<string, unknown>[];
  readonly pushes: readonly Record<string, unknown>[];
  readonly error: { readonly code: string; readonly message: string };
  readonly tenants: readonly { readonly tenant_id: string }[];
  readonly tokens: readonly unknown[];
  readonly devices: readonly unknown[];
  readonly quotas: Readonly<Record<string, number>>;
}
async function call(method: Method, path: string, payload?: unknown, token = admin_token): Promise<{ status: number; body: Body }> {
  const headers = { authorization: `Bearer ${token}`, ...(payload === undefined ? {} : { 'content-type': 'application/json' }) };
  const { status, text } = await send(method, path, payload === undefined ? undefined : JSON.stringify(payload), headers);
  return { status, body: (text === '' ? undefined : JSON.parse(text)) as Body };
}
const makeTenant = async () => (await call('POST', '/v1/tenants', { name: 'Home' })).body;

test('a new tenant has an id, two tokens whose hashes alone are kept, and a default agent', async () => {
  const { status, body } = await call('POST', '/v1/tenants', { name: '  Home  ' });
  expect(status).toBe(201);
  expect(body.tenant_id).toMatch(/^[a-z0-9]{12}$/);
  expect(body.device_token).toMatch(new RegExp(`^iris-device\\.${body.tenant_id}\\.[A-Za-z0-9_-]{43}$`));
  expect(body.agent_token).toMatch(new RegExp(`^iris-agent\\.${body.tenant_id}\\.[A-Za-z0-9_-]{43}$`));
  const tenant_id = body.tenant_id as TenantId;
  expect(await store.tenants.get(tenant_id)).toMatchObject({ name: 'Home', state: 'active', quotas: {} });
  expect(await store.tokens.find(tenant_id, tokenHash(body.device_token))).toMatchObject({
    kind: 'device',
    agent_id: null,
    revoked_at: null,
  });
  expect(await store.tokens.find(tenant_id, tokenHash(body.agent_token))).toMatchObject({ kind: 'agent', agent_id: body.agent_id });
  expect(await store.agents.list(tenant_id)).toMatchObject([{ agent_id: body.agent_id, is_default: true }]);
  expect(JSON.stringify(await store.tokens.list(tenant_id))).not.toContain(body.device_token.slice(-43));
  expect(await store.audit.list(tenant_id, 10)).toMatchObject([{ actor: 'bootstrap', action: 'tenant.create', subject: tenant_id }]);
});

test.each([
  ['no token', undefined],
  ['an empty token', ''],
  ['a wrong token', 'admin-token-of-the-tesu'],
  ['a token with more behind it', `${admin_token}x`],
])('%s opens nothing', async (_, token) => {
  const { status, body } = await call('GET', '/v1/tenants', undefined, token ?? '');
  expect([status, body.error.code]).toEqual([401, 'auth']);
  expect((await send('GET', '/v1/tenants', undefined, {})).status).toBe(401);
});

test('health and the document need no token; the document names every route', async () => {
  expect((await send('GET', '/healthz', undefined, {})).text).toBe('ok\n');
  expect(JSON.parse((await send('GET', '/readyz', undefined, {})).text)).toEqual({ ready: true, checks: { store: true, bus: true } });
  const document = JSON.parse((await send('GET', '/openapi.json', undefined, {})).text);
  expect(document.openapi).toBe('3.1.0');
  expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(['/v1/tenants', '/v1/tenants/{tenant_id}/tokens/{token_id}']));
  expect(document.paths['/v1/tenants'].post.requestBody.content['application/json'].schema.properties.name).toMatchObject({
    type: 'string',
  });
});

test.each<[string, Method, string, unknown]>([
  ['a tenant without a name', 'POST', '/v1/tenants', {}],
  ['a blank name', 'POST', '/v1/tenants', { name: ' \t ' }],
  ['a name of 129 characters', 'POST', '/v1/tenants', { name: '🙂'.repeat(129) }],
  ['a name that is a number', 'POST', '/v1/tenants', { name: 7 }],
  ['an unknown field', 'POST', '/v1/tenants', { name: 'x', admin: true }],
  ['a body that is a list', 'POST', '/v1/tenants', []],
  ['no body', 'POST', '/v1/tenants', undefined],
  ['a limit of 0', 'GET', '/v1/tenants?limit=0', undefined],
  ['a limit that is no number', 'GET', '/v1/tenants?limit=many', undefined],
])('%s is refused', async (_, method, url, payload) => {
  const { status, body } = await call(method, url, payload);
  expect([status, body.error.code]).toEqual([400, 'unsupported']);
  expect(typeof body.error.message).toBe('string');
  expect(await store.tenants.list({ limit: 10 })).toEqual([]);
});

test('a body that is not JSON is refused, a large one too, a prototype stays as it was', async () => {
  const post = (payload: string) =>
    send('POST', '/v1/tenants', payload, { authorization: `Bearer ${admin_token}`, 'content-type': 'application/json' });
  expect(JSON.parse((await post('{')).text).error).toEqual({ code: 'unsupported', message: 'body: not JSON' });
  expect((await post(`{"name":"${'x'.repeat(70_000)}"}`)).status).toBe(413);
  expect((await post('{"name":"x","__proto__":{"polluted":1}}')).status).toBe(400);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test('a name of 128 characters, of any script, is kept as it is', async () => {
  const name = '家🙂'.repeat(64);
  const { status, body } = await call('POST', '/v1/tenants', { name });
  expect(status).toBe(201);
  expect((await call('GET', `/v1/tenants/${body.tenant_id}`)).body).toMatchObject({ name, quotas: defaultQuotas });
});

test('tenants are listed in pages, each once', async () => {
  const made = new Set<string>();
  for (let i = 0; i < 5; i++) made.add((await makeTenant()).tenant_id);
  const seen: string[] = [];
  for (let after = ''; ; ) {
    const { body } = await call('GET', `/v1/tenants?limit=2${after === '' ? '' : `&after=${after}`}`);
    if (body.tenants.length === 0) break;
    for (const tenant of body.tenants) seen.push(tenant.tenant_id);
    after = seen.at(-1)!;
  }
  expect(seen).toEqual([...made].sort());
});

test('a token for one device, one for any, one for the agent', async () => {
  const { tenant_id, agent_id } = await makeTenant();
  const paired = await call('POST', `/v1/tenants/${tenant_id}/tokens`, { kind: 'device', device_id: 'dev_a1' });
  expect(paired.status).toBe(201);
  expect(await store.tokens.find(tenant_id as TenantId, tokenHash(paired.body.token))).toMatchObject({
    kind: 'device',
    device_id: 'dev_a1',
  });
  const agent = await call('POST', `/v1/tenants/${tenant_id}/tokens`, { kind: 'agent' });
  expect(await store.tokens.find(tenant_id as TenantId, tokenHash(agent.body.token))).toMatchObject({
    kind: 'agent',
    agent_id,
    device_id: null,
  });
  const { body } = await call('GET', `/v1/tenants/${tenant_id}/tokens`);
  expect(body.tokens).toHaveLength(4);
  expect(JSON.stringify(body)).not.toContain('hash');

  for (const wrong of [
    { kind: 'admin' },
    { kind: 'device', role: 'owner' },
    { kind: 'admin', role: 'root' },
    { kind: 'agent', device_id: 'dev_a1' },
    { kind: 'device', agent_id },
    { kind: 'device', device_id: '' },
  ]) {
    expect((await call('POST', `/v1/tenants/${tenant_id}/tokens`, wrong)).body.error.code).toBe('unsupported');
  }
  expect((await call('POST', `/v1/tenants/${tenant_id}/tokens`, { kind: 'agent', agent_id: 'ag_none' })).status).toBe(404);
});

test('HEL27: an operator says that the service restarts: every edge hears it, and it is written down', async () => {
  expect(await call('POST', '/v1/restarting')).toEqual({ status: 204, body: undefined });
  expect(heard).toEqual([{ kind: 'restarting' }]);
  expect((await call('GET', '/v1/audit')).body).toMatchObject({ events: [{ action: 'service.restarting' }] });
});

test('revoking a token is stored first and then told to every edge; again is no error; unknown and foreign read alike', async () => {
  const mine = await makeTenant();
  const other = await makeTenant();
  const { body } = await call('POST', `/v1/tenants/${mine.tenant_id}/tokens`, { kind: 'device' });
  const url = (tenant: string, token: string) => `/v1/tenants/${tenant}/tokens/${token}`;
  expect(await call('DELETE', url(mine.tenant_id, body.token_id))).toEqual({ status: 204, body: undefined });
  expect((await store.tokens.find(mine.tenant_id as TenantId, tokenHash(body.token)))?.revoked_at).not.toBeNull();
  expect(heard).toEqual([{ kind: 'revoked', tenant_id: mine.tenant_id, token_id: body.token_id }]);
  expect((await call('DELETE', url(mine.tenant_id, body.token_id))).status).toBe(204);
  const foreign = await call('DELETE', url(other.tenant_id, body.token_id));
  expect(foreign).toEqual(await call('DELETE', url(other.tenant_id, 'tk_never')));
  expect(foreign.status).toBe(404);
});

test('devices are listed and revoked', async () => {
  const { tenant_id } = await makeTenant();
  const hello = {
    tenant_id: tenant_id as TenantId,
    device_id: 'dev/ä 1' as DeviceId,
    name: 'Phone',
    caps: {},
    token_id: 'tk_1' as TokenId,
  };
  await store.devices.hello({ ...hello, at: 5, max: 10 });
  await store.pushTargets.register(tenant_id as TenantId, hello.device_id, [{ kind: 'fcm', address: 'secret-push-token' }], 5);
  const { body } = await call('GET', `/v1/tenants/${tenant_id}/devices`);
  expect(body.devices).toMatchObject([{ device_id: 'dev/ä 1', name: 'Phone', revoked_at: null }]);
  expect(JSON.stringify(body)).not.toContain('secret-push-token');
  expect((await call('DELETE', `/v1/tenants/${tenant_id}/devices/${encodeURIComponent('dev/ä 1')}`)).status).toBe(204);
  expect((await store.devices.get(tenant_id as TenantId, hello.device_id))?.revoked_at).not.toBeNull();
  expect(heard).toEqual([{ kind: 'revoked', tenant_id, device_id: 'dev/ä 1' }]);
  expect((await call('DELETE', `/v1/tenants/${tenant_id}/devices/none`)).status).toBe(404);
});

test('PSH16: why a phone did, or did not, buzz; how much providers are told', async () => {
  const { tenant_id: id } = await makeTenant();
  const tenant_id = id as TenantId;
  const device_id = 'phone' as DeviceId;
  const lane = { chat_id: 'android:default' as ChatId, thread_id: null };
  await store.devices.hello({ tenant_id, device_id, name: '', caps: {}, token_id: 'tk' as TokenId, at: 1, max: 9 });
  const row = {
    ...lane,
    tenant_id,
    device_id,
    class: 'reply',
    with_cursor: null,
    attempts: 0,
    due_at: 0,
    decided_at: 5,
    withdrawn_at: null,
  } as const;
  await store.pushLedger.decide([
    { ...row, cursor: 3, covers: 3, state: 'sent', why: null, provider: 'fcm', answer: '200', attempts: 1, sent_at: 6 },
    { ...row, cursor: 4, covers: 4, state: 'skipped', why: 'confirmed', provider: null, answer: null, sent_at: null },
    {
      ...row,
      cursor: 5,
      covers: 5,
      state: 'failed',
      why: 'refused',
      provider: 'fcm',
      answer: '400 INVALID_ARGUMENT',
      attempts: 1,
      sent_at: null,
    },
  ]);
  const url = `/v1/tenants/${tenant_id}/devices/${device_id}/push`;
  const said = async (cursor: number) => (await call('GET', `${url}/${cursor}`)).body.explanation;
  expect(await said(3)).toBe('Yes: fcm accepted it after 1 attempt.');
  expect(await said(4)).toBe('No: the device had the frame already.');
  expect(await said(5)).toBe('No: refused after 1 attempt. fcm answered 400 INVALID_ARGUMENT.');
  expect(await said(9)).toMatch(/^No: the frame is not worth a push/);
  expect((await call('GET', `${url}?limit=2`)).body.decisions.map(({ cursor }) => cursor)).toEqual([5, 4]);
  expect((await call('GET', `${url}?cursor=3`)).body.decisions).toMatchObject([{ cursor: 3, state: 'sent', sent_at: 6 }]);
  expect((await call('GET', `/v1/tenants/${tenant_id}/devices/nobody/push/3`)).status).toBe(404);
  // The ledger of a device, page by page.
  const ledger = `/v1/tenants/${tenant_id}/devices/${device_id}/pushes`;
  const { body: page } = await call('GET', `${ledger}?limit=2`);
  expect(page.pushes).toMatchObject([
    { cursor: 5, state: 'failed', why: 'refused', provider: 'fcm', answer: '400 INVALID_ARGUMENT', attempts: 1, sent_at: null },
    { cursor: 4, state: 'skipped', why: 'confirmed', provider: null },
  ]);
  expect((await call('GET', `${ledger}?limit=2&before=4`)).body.pushes).toMatchObject([{ cursor: 3, state: 'sent', sent_at: 6 }]);
  expect((await call('GET', `/v1/tenants/${tenant_id}/devices/nobody/pushes`)).status).toBe(404);
  const settings = `/v1/tenants/${tenant_id}/push`;
  expect((await call('GET', settings)).body).toEqual({ content: 'full' });
  expect((await call('PATCH', settings, { content: 'encrypted' })).body).toEqual({ content: 'encrypted' });
  expect((await call('PATCH', settings, { content: 'loud' })).status).toBe(400);
  expect(await store.pushRules.content(tenant_id)).toBe('encrypted');
});

test('quotas are merged and told; wrong ones change nothing', async () => {
  const { tenant_id } = await makeTenant();
  const url = `/v1/tenants/${tenant_id}/quotas`;
  expect((await call('PATCH', url, { devices: 3 })).body.quotas).toEqual({ ...defaultQuotas, devices: 3 });
  expect((await call('PATCH', url, { outbox_max_frames: 50 })).body.quotas).toEqual({
    ...defaultQuotas,
    devices: 3,
    outbox_max_frames: 50,
  });
  expect(heard).toEqual([
    { kind: 'changed', tenant_id, what: 'tenant' },
    { kind: 'changed', tenant_id, what: 'tenant' },
  ]);
  for (const wrong of [{}, { devices: -1 }, { devices: 1.5 }, { devices: '3' }, { gold: 1 }])
    expect((await call('PATCH', url, wrong)).status).toBe(400);
  expect((await store.tenants.get(tenant_id as TenantId))?.quotas).toEqual({ devices: 3, outbox_max_frames: 50 });
});

test.each<[Method, string, unknown]>([
  ['GET', '/v1/tenants/nobody', undefined],
  ['GET', '/v1/tenants/nobody/devices', undefined],
  ['GET', '/v1/tenants/nobody/tokens', undefined],
  ['POST', '/v1/tenants/nobody/tokens', { kind: 'device' }],
  ['PATCH', '/v1/tenants/nobody/quotas', { devices: 1 }],
  ['DELETE', '/v1/tenants/nobody/devices/d', undefined],
  ['GET', '/v2', undefined],
])('%s %s is not found', async (method, path, payload) => {
  const { status, body } = await call(method, path, payload);
  expect([status, body.error.code]).toEqual([404, 'not_found']);
});

test('a store that fails is `internal`, and says nothing of why', async () => {
  store.tenants.list = () => Promise.reject(new Error('password=hunter2'));
  expect(await call('GET', '/v1/tenants')).toEqual({ status: 500, body: { error: { code: 'internal', message: 'internal error' } } });
});
