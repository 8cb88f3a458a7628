import { memoryHub } from '@iris/bus';
import type { DeviceId, TenantId, TokenId } from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { type ManualClock, manualClock, seededRandom } from '@iris/runtime/testing';
import { memoryStore, type Store, tokenHash } from '@iris/store';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Api, buildApi } from './index.js';
import { testConfig } from './testing/config.js';

let api: Api;
let url: string;
let store: Store;
let clock: ManualClock;
let config: ReturnType<typeof testConfig>;

beforeEach(async () => {
  clock = manualClock();
  store = memoryStore(clock);
  config = testConfig({ public_url: 'wss://gateway.example/ws', trusted_proxies: ['127.0.0.1'] });
  const hub = memoryHub({ clock, deliver: ({ run }) => run() });
  api = await buildApi({ store, bus: hub.connect(), clock, random: seededRandom(7), log: silentLog }, config);
  url = await api.listen({ port: 0, host: '127.0.0.1' });
});
afterEach(() => api.close());

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
async function call<T = Record<string, unknown>>(
  method: Method,
  path: string,
  payload?: object,
  token: string = config.admin_token,
  address = '127.0.0.1',
) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      // Of the proxy that the API believes.
      'x-forwarded-for': address,
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(payload === undefined ? {} : { body: JSON.stringify(payload) }),
  });
  const text = await response.text();
  const json = response.headers.get('content-type')?.includes('json') === true;
  return { status: response.status, body: (json ? JSON.parse(text) : text) as T, headers: response.headers };
}
const makeTenant = async (name = 'Home') => (await call<{ tenant_id: TenantId; agent_id: string }>('POST', '/v1/tenants', { name })).body;
const adminOf = async (tenant_id: string, role: string): Promise<{ token: string; token_id: string }> =>
  (await call<{ token: string; token_id: string }>('POST', `/v1/tenants/${tenant_id}/tokens`, { kind: 'admin', role, label: role })).body;

interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
}
interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Shape }>> };
}
const operations = async () => {
  const { paths } = (await call('GET', '/openapi.json')).body as { paths: Record<string, Record<string, Operation>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([name, operation]) => ({ path, method: name.toUpperCase() as Method, operation })),
  );
};

/** What stands in addresses and is no id. A new name fails the matrix until it stands here, or among the ids of a {@link party}. */
const noIds = new Set(['cursor', 'limit', 'before', 'from', 'to', 'after']);

/** Every call of the document, with these ids, a number where something else stands, and a body that its schema takes. */
async function everyCall(ids: Readonly<Record<string, string>>) {
  const bodies: Readonly<Record<string, object>> = {
    'PATCH /v1/tenants/{tenant_id}': { state: 'active' },
    'PATCH /v1/tenants/{tenant_id}/quotas': { devices: 7 },
    'POST /v1/tenants/{tenant_id}/tokens': { kind: 'device' },
    'POST /v1/tenants/{tenant_id}/tokens/{token_id}/rotate': {},
    'POST /v1/tenants/{tenant_id}/pairings': {},
    'PATCH /v1/tenants/{tenant_id}/push': { content: 'full' },
    'POST /v1/tenants/{tenant_id}/agents': { name: 'x' },
    'PATCH /v1/tenants/{tenant_id}/agents/{agent_id}': { name: 'x' },
    'PATCH /v1/tenants/{tenant_id}/channels/{chat_id}': { agent_id: null },
    'PATCH /v1/tenants/{tenant_id}/devices/{device_id}': { label: 'x' },
    'POST /v1/tenants': { name: 'x' },
    'POST /v1/pair': { code: 'x', device_id: 'x' },
  };
  return (await operations()).map(({ path, method, operation }) => {
    const url = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      if (ids[name] === undefined && !noIds.has(name)) throw new Error(`${path}: say what ${name} names`);
      return encodeURIComponent(ids[name] ?? '4');
    });
    return { method, path, url, operation, what: `${method} ${path}`, body: bodies[`${method} ${path}`] };
  });
}

/** Names in bodies that look like ids', wherever they stand. */
const idsIn = (shape: Shape): string[] => [
  ...(shape.anyOf ?? []).flatMap(idsIn),
  ...(shape.items ? idsIn(shape.items) : []),
  ...Object.entries(shape.properties ?? {}).flatMap(([name, one]) => [...(/_(id|ids|ref|refs)$/.test(name) ? [name] : []), ...idsIn(one)]),
];
/** What a body must say besides, so that the id is looked at. */
const meant: Readonly<Record<string, object>> = { 'POST /v1/tenants/{tenant_id}/tokens agent_id': { kind: 'agent' } };
/** Names that a device gives itself: no look-up of anything. */
const ownNames = new Set(['POST /v1/tenants/{tenant_id}/tokens device_id', 'POST /v1/pair device_id']);

/** A tenant in which everything exists that an id can name. @param channels more than others have, so that the last is none of theirs */
async function party(channels = 0) {
  const { tenant_id, agent_id } = await makeTenant();
  const device_id = `device of ${tenant_id}` as DeviceId;
  await store.devices.hello({ tenant_id, device_id, name: 'Phone', caps: {}, token_id: 'tk' as TokenId, at: 1, max: 9 });
  const message_id = `m_${tenant_id}`;
  const lane = { chat_id: 'android:default', thread_id: null };
  const nulls = {
    reasoning: null,
    media: null,
    reply_to: null,
    model: null,
    tokens: null,
    runtime: null,
    cursor: 4,
    idempotency_key: null,
  };
  const rest = { client_ref: null, device_id: null, turn_id: null, steer: false, interrupted: false, late: false, own_id: null };
  await store.messages.insert([
    { message: { ...lane, ...nulls, ...rest, tenant_id, message_id, role: 'user', text: 'secret', ts: 5 } as never },
  ]);
  const { token_id } = (await call<{ token_id: string }>('POST', `/v1/tenants/${tenant_id}/tokens`, { kind: 'device' })).body;
  let chat_id = 'android:default';
  for (let n = 0; n < channels; n++) {
    const made = await store.channels.create({ tenant_id, name: 'x', auto: false, idempotency_key: `c${n}`, max: 9, at: 1 });
    if (typeof made !== 'string') ({ chat_id } = made.row);
  }
  return { tenant_id, agent_id, device_id, message_id, token_id, chat_id };
}

describe('C119 ENV27: the ownership matrix of the admin API, from its own document', () => {
  test('a tenant’s owner is told of another tenant what is told of one that never was', async () => {
    const [mine, theirs] = [await party(), await party()];
    const { token } = await adminOf(mine.tenant_id, 'owner');
    const before = JSON.stringify([
      await store.tokens.list(theirs.tenant_id),
      await store.devices.list(theirs.tenant_id),
      await store.tenants.get(theirs.tenant_id),
    ]);
    const never = {
      tenant_id: 'never00000',
      agent_id: 'ag_never',
      device_id: 'never',
      message_id: 'm_never',
      token_id: 'tk_never',
      chat_id: 'never',
    };
    let tried = 0;
    for (const { method, path, url, what, body } of await everyCall({ ...theirs })) {
      if (!path.includes('{tenant_id}')) continue;
      const unknown = (await everyCall(never)).find((one) => one.what === what)!;
      const [foreign, other] = [await call(method, url, body, token), await call(method, unknown.url, body, token)];
      expect([what, foreign.status, foreign.body]).toEqual([what, other.status, other.body]);
      // What only operators may do is refused whoever's it is.
      expect([403, 404]).toContain(foreign.status);
      tried++;
    }
    expect(tried).toBeGreaterThan(15);
    expect(
      JSON.stringify([
        await store.tokens.list(theirs.tenant_id),
        await store.devices.list(theirs.tenant_id),
        await store.tenants.get(theirs.tenant_id),
      ]),
    ).toBe(before);
    expect((await call('GET', '/v1/tenants', undefined, token)).body.tenants).toMatchObject([{ tenant_id: mine.tenant_id }]);
    expect((await call('GET', `/v1/tenants?after=${mine.tenant_id}`, undefined, token)).body.tenants).toEqual([]);
  });

  test('inside a tenant, an id of another in any place reads as one that never was, for operators too', async () => {
    const [mine, theirs] = [await party(), await party(3)];
    const tried = new Set<string>();
    const probe = async (name: string, id: string) => {
      const heard = [];
      for (const { method, path, url, what, body, operation } of await everyCall({ ...mine, [name]: id })) {
        if (path.includes(`{${name}}`)) heard.push({ at: `${what} ${name}`, ...(await call(method, url, body)) });
        const inBody = Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) => idsIn(schema));
        if (inBody.includes(name) && !ownNames.has(`${what} ${name}`)) {
          const own = (await everyCall({ ...mine })).find((one) => one.what === what)!.url;
          heard.push({ at: `${what} body ${name}`, ...(await call(method, own, { ...body, ...meant[`${what} ${name}`], [name]: id })) });
        }
      }
      return heard.map(({ at, status, body }) => ({ at, status, body }));
    };
    for (const name of Object.keys(mine).filter((one) => one !== 'tenant_id') as (keyof typeof mine)[]) {
      const [foreign, never] = [await probe(name, theirs[name]), await probe(name, `${theirs[name]}x`)];
      expect(foreign).toEqual(never);
      for (const { at, status } of foreign) {
        expect([at, status]).toEqual([at, 404]);
        tried.add(at);
      }
    }
    // None is left out because nobody has said what it names.
    for (const { path, method, operation } of await operations()) {
      const what = `${method} ${path}`;
      for (const { in: where, name } of operation.parameters ?? [])
        if (name !== 'tenant_id' && !noIds.has(name)) expect([where, tried.has(`${what} ${name}`), name]).toEqual(['path', true, name]);
      for (const name of Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) => idsIn(schema)))
        if (!ownNames.has(`${what} ${name}`)) expect(tried).toContain(`${what} body ${name}`);
    }
  });

  test('nothing is open because nobody thought of it: without a token every call but pairing is refused', async () => {
    for (const { method, url, what, body } of await everyCall({ ...(await party()) }))
      expect([what, (await call(method, url, body, '', '10.0.0.9')).status]).toEqual([what, what === 'POST /v1/pair' ? 404 : 401]);
  });
});

describe('roles', () => {
  test('read-only looks, admin changes, owner gives rights; what operators decide no tenant does', async () => {
    const mine = await party();
    const [reader, admin, owner] = [
      await adminOf(mine.tenant_id, 'read-only'),
      await adminOf(mine.tenant_id, 'admin'),
      await adminOf(mine.tenant_id, 'owner'),
    ];
    const operators = [
      'POST /v1/tenants',
      'PATCH /v1/tenants/{tenant_id}',
      'PATCH /v1/tenants/{tenant_id}/quotas',
      'DELETE /v1/tenants/{tenant_id}',
      'POST /v1/tenants/import',
      'GET /v1/audit',
      'POST /v1/restarting',
    ];
    const owners = ['GET /v1/tenants/{tenant_id}/export'];
    for (const { method, path, url, what, body } of await everyCall({ ...mine })) {
      if (path === '/v1/pair') continue;
      const refused = async (token: string) => (await call(method, url, body, token)).status === 403;
      const ofOperators = operators.includes(what);
      expect([what, await refused(reader.token)]).toEqual([what, ofOperators || owners.includes(what) || method !== 'GET']);
      if (method === 'DELETE') {
        // What is gone cannot be asked for twice: each has a tenant of its own.
        for (const role of ['admin', 'owner'] as const) {
          const other = await party();
          const { token } = await adminOf(other.tenant_id, role);
          const there = (await everyCall({ ...other })).find((one) => one.what === what)!;
          const { status } = await call(method, there.url, undefined, token);
          expect([role, what, status === 403]).toEqual([role, what, ofOperators]);
        }
        continue;
      }
      expect([what, await refused(admin.token)]).toEqual([what, ofOperators || owners.includes(what)]);
      expect([what, await refused(owner.token)]).toEqual([what, ofOperators]);
    }
    const give = { kind: 'admin', role: 'read-only' };
    const tokens = `/v1/tenants/${mine.tenant_id}/tokens`;
    expect((await call('POST', tokens, give, admin.token)).status).toBe(403);
    expect((await call('POST', tokens, give, owner.token)).status).toBe(201);
    expect((await call('DELETE', `${tokens}/${owner.token_id}`, undefined, admin.token)).status).toBe(403);
    expect((await call('POST', `${tokens}/${owner.token_id}/rotate`, {}, admin.token)).status).toBe(403);
    expect(await store.audit.list(mine.tenant_id, 1)).toMatchObject([{ actor: `token:${owner.token_id}`, action: 'token.create' }]);
  });

  test('a revoked or expired one, and one of a device, opens nothing', async () => {
    const mine = await party();
    const { token, token_id } = await adminOf(mine.tenant_id, 'owner');
    const look = (with_: string) => call('GET', `/v1/tenants/${mine.tenant_id}`, undefined, with_);
    expect((await look(token)).status).toBe(200);
    const url = `/v1/tenants/${mine.tenant_id}/tokens`;
    const device = (await call<{ token: string }>('POST', url, { kind: 'device' })).body;
    expect((await look(device.token)).status).toBe(401);
    const { body: next } = (await call('POST', `${url}/${token_id}/rotate`, { overlap_ms: 1_000 })) as unknown as {
      body: { token: string; token_id: string };
    };
    expect([(await look(token)).status, (await look(next.token)).status]).toEqual([200, 200]);
    await clock.advance(1_001);
    expect([(await look(token)).status, (await look(next.token)).status]).toEqual([401, 200]);
    await call('DELETE', `${url}/${next.token_id}`);
    expect((await look(next.token)).status).toBe(401);
  });
});

test('C126: wrong tokens are limited within 20 tries of one network; others, and who was let in before, still get in', async () => {
  const mine = await party();
  const url = `/v1/tenants/${mine.tenant_id}`;
  const from = (token: string, address: string) => call('GET', url, undefined, token, address);
  expect((await from(config.admin_token, '10.1.2.3')).status).toBe(200);
  const statuses: number[] = [];
  for (let n = 0; n < 40; n++) statuses.push((await from(`iris-admin.${mine.tenant_id}.${'x'.repeat(30)}${n}`, '10.1.2.3')).status);
  expect(statuses.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 401));
  expect(statuses.slice(20)).toEqual(Array.from({ length: 20 }, () => 429));
  expect((await from(config.admin_token, '10.1.2.3')).status).toBe(200);
  expect((await from(config.admin_token, '10.9.9.9')).status).toBe(200);
  const { body, headers } = await from('wrong', '10.1.2.3');
  expect([(body.error as { code: string }).code, Number(headers.get('retry-after'))]).toEqual(['rate_limited', 6]);
  await clock.advance(60_000);
  expect((await from('wrong', '10.1.2.3')).status).toBe(401);
});

describe('pairing', () => {
  const pair = (code: string, device_id: string, address = '127.0.0.1') => call('POST', '/v1/pair', { code, device_id }, '', address);

  test('a code becomes a token of that device, once', async () => {
    const { tenant_id } = await party();
    const { status, body } = await call('POST', `/v1/tenants/${tenant_id}/pairings`, { label: 'my phone' });
    const { code, link } = body as unknown as { code: string; link: string };
    expect([status, code]).toEqual([201, expect.stringMatching(/^[2-9A-Z]{4}-[2-9A-Z]{4}-[2-9A-Z]{4}$/)]);
    expect(new URL(link).searchParams.get('code')).toBe(code);
    const [first, second] = await Promise.all([pair(code.toLowerCase().replaceAll('-', ' '), 'dev_1'), pair(code, 'dev_2')]);
    expect([first.status, second.status].sort()).toEqual([201, 404]);
    const won = (first.status === 201 ? first : second).body as unknown as { token: string; gateway: string; tenant_id: string };
    expect(won).toMatchObject({ gateway: 'wss://gateway.example/ws', tenant_id });
    expect(await store.tokens.find(tenant_id, tokenHash(won.token))).toMatchObject({
      kind: 'device',
      label: 'my phone',
      device_id: first.status === 201 ? 'dev_1' : 'dev_2',
    });
    expect((await pair(code, 'dev_1')).status).toBe(404);
  });

  test('late, unknown and of a suspended tenant read alike, and guessing is limited', async () => {
    const { tenant_id } = await party();
    const make = async () =>
      ((await call('POST', `/v1/tenants/${tenant_id}/pairings`, { valid_ms: 5_000 })).body as unknown as { code: string }).code;
    const late = await make();
    await clock.advance(5_000);
    const fresh = await make();
    await store.tenants.setState(tenant_id, 'suspended');
    const answers = [await pair(late, 'd'), await pair('NEVER-WAS', 'd'), await pair(fresh, 'd')];
    for (const answer of answers) expect([answer.status, answer.body]).toEqual([404, answers[1]!.body]);
    const statuses = [];
    for (let n = 0; n < 30; n++) statuses.push((await pair(`WRONG${n}`, 'd', '10.5.5.5')).status);
    expect(statuses.filter((status) => status === 404)).toHaveLength(20);
    expect((await pair('X', 'd', '10.6.6.6')).status).toBe(404);
  });
});

test('a message’s trace says where it got to and never what it says; usage, audit and agents', async () => {
  const mine = await party();
  const of = (rest: string) => `/v1/tenants/${mine.tenant_id}/${rest}`;
  await store.devices.confirm([{ tenant_id: mine.tenant_id, device_id: mine.device_id, cursor: 4, at: 9 }]);
  const { status, body } = await call('GET', of(`messages/${mine.message_id}/trace`));
  expect(status).toBe(200);
  expect(JSON.stringify(body)).not.toContain('secret');
  expect(body).toMatchObject({
    cursor: 4,
    role: 'user',
    accepted_at: 5,
    turn: null,
    devices: [{ device_id: mine.device_id, reached: true, read: false }],
  });
  expect((await call('GET', of('usage?from=1970-01-01&to=1970-01-02'))).body).toMatchObject({
    days: [{ day: '1970-01-01', user_messages: 1 }],
  });
  expect((await call('GET', of('usage?from=1970-02-30&to=x'))).status).toBe(400);
  const made = (await call('POST', of('agents'), { name: ' Second ', is_default: true })).body as unknown as { agent_id: string };
  expect((await call('GET', of('agents'))).body).toMatchObject({
    agents: [{ is_default: false }, { agent_id: made.agent_id, name: 'Second', is_default: true, linked: false }],
  });
  expect((await call('PATCH', of(`agents/${mine.agent_id}`), { is_default: true })).body).toMatchObject({ is_default: true });
  expect((await call('PATCH', of(`devices/${encodeURIComponent(mine.device_id)}`), { label: 'Kitchen' })).body).toMatchObject({
    name: 'Phone',
    label: 'Kitchen',
  });
  await call('PATCH', of('quotas'), { agents: 2 });
  expect((await call('POST', of('agents'), { name: 'Third' })).status).toBe(429);
  const { events } = (await call('GET', of('audit?limit=2'))).body as unknown as { events: { action: string }[] };
  expect(events.map(({ action }) => action)).toEqual(['quotas.set', 'device.rename']);
});

test('the docs page has its parts from here alone, and every answer says so', async () => {
  for (const [url, type] of [
    ['/docs', 'text/html'],
    ['/docs/script.js', 'text/javascript'],
    ['/docs/style.css', 'text/css'],
  ] as const) {
    const { headers, status, body } = await call<string>('GET', url);
    expect([url, status, headers.get('content-type')]).toEqual([url, 200, expect.stringContaining(type)]);
    expect(body).not.toMatch(/https?:\/\//);
  }
  const { headers } = await call('GET', '/v1/tenants');
  const said = Object.fromEntries(headers);
  expect(said).toMatchObject({ 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY', 'cache-control': 'no-store' });
  expect(said['content-security-policy']).toContain("default-src 'none'");
});
