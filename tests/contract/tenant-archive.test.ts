import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { memoryHub } from '@iris/bus';
import { buildApi, defaultControlConfig } from '@iris/control';
import { filesystemMedia, type MediaStore } from '@iris/media';
import { memoryOutbox } from '@iris/outbox';
import type { ChatId, DeviceId, MediaId, MessageId, ObjectId, TenantId, ThreadId, TokenId, TurnId } from '@iris/protocol';
import { silentLog, systemClock, systemRandom } from '@iris/runtime';
import { migrate, postgresArchive, prismaStore, type Store } from '@iris/store';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { databaseForTests } from './postgres-servers.js';
import { userMessage } from './rows.js';

const admin_token = 'admin-token-of-the-test';
const sealing_secret = 'a-secret-of-this-stack-0123456789abcdef';
const lane = { chat_id: 'android:default' as ChatId, thread_id: null };

/** A stack of its own: database, files, and the admin API on them. */
async function stack(secret: string) {
  const database = await databaseForTests();
  await migrate(database.url);
  const folder = mkdtempSync(join(tmpdir(), 'iris-archive-'));
  const store = prismaStore({ url: database.url });
  const archive = postgresArchive({ url: database.url });
  const media = filesystemMedia({ folder });
  const outbox = memoryOutbox({ clock: systemClock }).connect();
  const deps = {
    store,
    archive,
    media,
    outbox,
    bus: memoryHub({ clock: systemClock }).connect(),
    clock: systemClock,
    random: systemRandom,
  };
  const api = await buildApi({ ...deps, log: silentLog }, { ...defaultControlConfig, admin_token, sealing_secret: [secret] });
  const url = await api.listen({ port: 0, host: '127.0.0.1' });
  const call = (method: string, path: string, body?: BodyInit, type = 'application/json') =>
    fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${admin_token}`, 'content-type': type },
      ...(body === undefined ? {} : { body }),
    });
  return {
    store,
    archive,
    media,
    call,
    async close() {
      await api.close();
      await Promise.all([store.close(), archive.close()]);
      await database.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function put(media: MediaStore, tenant_id: TenantId, object_id: ObjectId, bytes: Uint8Array) {
  const writer = await media.open(tenant_id, object_id);
  await writer.append(bytes);
  return writer.finish();
}
async function bytesOf(media: MediaStore, tenant_id: TenantId, object_id: ObjectId) {
  const chunks = [];
  for await (const chunk of (await media.read(tenant_id, object_id))!.bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}
/** What a tenant holds, without what is of its installation. */
async function contents(store: Store, tenant_id: TenantId) {
  const channels = await store.channels.list(tenant_id);
  const pages = await Promise.all(channels.map((at) => store.messages.page(tenant_id, at, { limit: 200 })));
  const plain = (rows: readonly { tenant_id: unknown }[]) => rows.map(({ tenant_id: _, ...row }) => row);
  return {
    channels: plain(channels),
    messages: pages.map((page) => (typeof page === 'string' ? page : plain(page.rows))),
    reads: plain(await store.reads.list(tenant_id)),
    devices: plain(await store.devices.list(tenant_id)),
    agents: plain(await store.agents.list(tenant_id)),
    media: plain((await Promise.all(['md_1', 'md_2'].map((id) => store.media.get(tenant_id, id as MediaId)))).flatMap((row) => row ?? [])),
    usage: await store.usage.days(tenant_id, '1970-01-01', '1970-01-02'),
  };
}

describe('a tenant as an archive', () => {
  let [first, second]: Awaited<ReturnType<typeof stack>>[] = [];
  let here: Awaited<ReturnType<typeof stack>>;
  let there: Awaited<ReturnType<typeof stack>>;
  const tenant_id = 'moved' as TenantId;
  const other = 'stays' as TenantId;
  const preview = Buffer.from('a small picture');
  const file = Buffer.from('bytes of a file '.repeat(10_000));
  let exported: Buffer;
  let removed: MessageId;

  beforeAll(async () => {
    [first, second] = await Promise.all([stack(sealing_secret), stack('another-secret-of-another-stack-0123456789')]);
    [here, there] = [first!, second!];
    const { store, media } = here;
    for (const tenant of [tenant_id, other]) {
      await store.tenants.create({ tenant_id: tenant, name: `Of ${tenant} ä`, agent_id: 'ag' as never, at: 1 });
      await store.tokens.create({
        tenant_id: tenant,
        token_id: 'tk' as TokenId,
        kind: 'device',
        hash: `h ${tenant}`,
        device_id: null,
        agent_id: null,
        created_at: 1,
      });
    }
    await store.tenants.setQuotas(tenant_id, { devices: 12 });
    const made = await store.channels.create({ tenant_id, name: 'Second', auto: false, idempotency_key: 'k', max: 9, at: 2 });
    const channel = (made as { row: { chat_id: ChatId } }).row;
    await store.agents.create({ tenant_id, agent_id: 'second' as never, name: 'Second agent', is_default: false, at: 2 });
    for (const [agent_id, backend] of [
      ['ag', { kind: 'demo' }],
      [
        'second',
        { kind: 'openai', url: 'https://models.example/v1', model: 'large', system_prompt: 'Be brief.', key: 'the-key-of-the-endpoint' },
      ],
    ] as const) {
      const set = await here.call('PATCH', `/v1/tenants/${tenant_id}/agents/${agent_id}`, JSON.stringify({ backend }));
      expect([set.status, await set.text()]).toEqual([200, expect.any(String)]);
    }
    const split = await store.channels.create({
      ...{ tenant_id, chat_id: channel.chat_id, name: 'Aside', auto: true, idempotency_key: 'k2', max: 9, at: 2 },
    });
    const thread = (split as { row: { thread_id: ThreadId | null } }).row;
    await store.devices.hello({
      tenant_id,
      device_id: 'phone' as DeviceId,
      name: 'Phone',
      caps: {},
      token_id: 'tk' as TokenId,
      at: 1,
      max: 9,
    });
    const row = {
      tenant_id,
      media_id: 'md_1' as MediaId,
      media_ref: null,
      device_id: null,
      state: 'attached',
      kind: 'file',
      mime: 'text/plain',
    } as const;
    const sha256 = '0'.repeat(64);
    const content = { object_id: 'ob_1' as ObjectId, size: file.length, sha256 };
    const kept = { ...content, uploaded_sha256: sha256, processed: true };
    await store.media.insert(
      { ...row, ...kept, filename: 'ä.png', details: { width: 9, height: 9, thumb_media_id: 'md_2' }, created_at: 4 },
      content,
    );
    await put(media, tenant_id, 'ob_1' as ObjectId, file);
    // Its preview is a file of its own.
    const small = { object_id: 'ob_2' as ObjectId, size: preview.length, sha256: '1'.repeat(64) };
    const beside = { ...row, media_id: 'md_2' as MediaId, filename: 'ä.webp', mime: 'image/webp', details: {}, created_at: 4 };
    await store.media.insert({ ...beside, ...small, uploaded_sha256: small.sha256, processed: true }, small);
    await put(media, tenant_id, 'ob_2' as ObjectId, preview);
    const texts = Array.from({ length: 1_200 }, (_, n) => `message ${n} says ${n % 7 === 0 ? 'geheimnisvoll' : 'hello'} 天气`);
    const messages = texts.map((text, n) =>
      userMessage(tenant_id, {
        text,
        cursor: n + 1,
        ...(n % 3 === 0 ? { chat_id: channel.chat_id } : {}),
        ...(n % 9 === 0 ? { thread_id: thread.thread_id } : {}),
        ...(n === 5 ? { media: [{ media_id: 'md_1' }] } : {}),
      }),
    );
    await store.messages.insert(messages.map((message) => ({ message })));
    await store.messages.insert([{ message: userMessage(other, { text: 'not to be moved' }) }]);
    removed = messages[7]!.message_id;
    await store.messages.remove(tenant_id, lane, [removed], 9);
    await store.reads.advance({ ...lane, tenant_id, device_id: 'phone' as DeviceId, message_id: messages[8]!.message_id, cursor: 9 });
    const turn = {
      turn_id: 'tn_1' as TurnId,
      agent_id: null,
      message_id: messages[8]!.message_id,
      kind: 'chat',
      device_id: null,
      connection_id: null,
    } as const;
    await store.turns.queue(tenant_id, lane, { ...turn, created_at: 5 });
  });
  afterAll(() => Promise.all([first?.close(), second?.close()]));

  test('export, import elsewhere: every message, channel and file is there and searchable; nothing of another tenant, and no token', async () => {
    const answer = await here.call('GET', `/v1/tenants/${tenant_id}/export`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/gzip']);
    exported = Buffer.from(await answer.arrayBuffer());
    const imported = await there.call('POST', '/v1/tenants/import', new Uint8Array(exported), 'application/gzip');
    const body = (await imported.json()) as { tenant_id: TenantId; device_token: string; rows: Record<string, number>; files: number };
    expect([imported.status, body.tenant_id, body.files]).toEqual([201, tenant_id, 2]);
    expect(body.rows).toMatchObject({ message: 1_200, channel: 3, media: 2, agent: 2, read_state: 1, device: 1, turn: 1 });
    const held = await contents(there.store, tenant_id);
    expect(held).toEqual(await contents(here.store, tenant_id));
    expect([held.media.length, held.agents.length, held.usage.length]).toEqual([2, 2, 1]);
    expect(await there.store.messages.get(tenant_id, removed)).toBeUndefined();
    expect(await there.store.tenants.get(tenant_id)).toMatchObject({ name: 'Of moved ä', state: 'active', quotas: { devices: 12 } });
    expect(await bytesOf(there.media, tenant_id, 'ob_1' as ObjectId)).toEqual(file);
    expect(await bytesOf(there.media, tenant_id, 'ob_2' as ObjectId)).toEqual(preview);
    for (const text of ['geheimnisvoll', '天气', 'message 777']) {
      const [was, is] = await Promise.all([here, there].map(({ store }) => store.messages.search(tenant_id, { text, limit: 50 })));
      expect(is!.rows.length).toBeGreaterThan(0);
      expect(is).toEqual(was);
    }
    expect(await there.store.turns.get(tenant_id, 'tn_1' as TurnId)).toMatchObject({ state: 'ended', outcome: 'interrupted' });
    expect((await there.store.tokens.list(tenant_id)).map(({ hash }) => hash)).not.toContain('h moved');
    expect(await there.store.tenants.get(other)).toBeUndefined();
    // Numbers go on from where they were: nothing is given twice.
    const next = await there.store.channels.create({ tenant_id, name: 'Third', auto: false, idempotency_key: 'k3', max: 9, at: 2 });
    expect(next).toMatchObject({ row: { chat_id: 'android:chan_3' } });
    expect((await there.store.tenants.reserveCursors(tenant_id, 1))!.from).toBe((await here.store.tenants.get(tenant_id))!.cursor_reserved);
  });

  test('a second time it comes under another id, with other files and its own index', async () => {
    const imported = await there.call('POST', '/v1/tenants/import', new Uint8Array(exported), 'application/gzip');
    const { tenant_id: copy } = (await imported.json()) as { tenant_id: TenantId };
    expect(copy).not.toBe(tenant_id);
    expect(await contents(there.store, copy)).toEqual(await contents(here.store, tenant_id));
    expect(await bytesOf(there.media, copy, 'ob_1' as ObjectId)).toEqual(file);
    expect((await there.store.messages.search(copy, { text: 'geheimnisvoll', limit: 50 })).rows).toHaveLength(50);
  });

  test('backends come without their secrets: one without a key serves again, one with a key waits until it is set', async () => {
    const unpacked = gunzipSync(exported);
    // A header of 512 bytes with the size in octal, then the bytes.
    const at = unpacked.indexOf('tables/agent_backend/');
    const size = Number.parseInt(unpacked.subarray(at + 124, at + 136).toString(), 8);
    const rows = unpacked.subarray(at + 512, at + 512 + size).toString();
    const given = rows
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .sort((a, b) => (String(a.agent_id) < String(b.agent_id) ? -1 : 1));
    const settings = { url: 'https://models.example/v1', model: 'large', system_prompt: 'Be brief.' };
    expect(given).toEqual([
      { tenant_id, agent_id: 'ag', kind: 'demo', settings: {}, has_key: false, changed_at: expect.any(Number) },
      { tenant_id, agent_id: 'second', kind: 'openai', settings, has_key: true, changed_at: expect.any(Number) },
    ]);
    const standing = await here.store.agentBackends.list(tenant_id);
    for (const secret of ['the-key-of-the-endpoint', ...standing.flatMap(({ token_id, sealed }) => [token_id, sealed])])
      expect(unpacked.includes(secret)).toBe(false);

    const imported = await there.call('POST', '/v1/tenants/import', new Uint8Array(exported), 'application/gzip');
    const { tenant_id: copy, waiting_backends } = (await imported.json()) as { tenant_id: TenantId; waiting_backends: string[] };
    expect(waiting_backends).toEqual(['second']);
    const shown = async () => {
      const { agents } = (await (await there.call('GET', `/v1/tenants/${copy}/agents`)).json()) as { agents: { backend: object }[] };
      return agents.map(({ backend }) => backend);
    };
    expect(await shown()).toEqual([
      { kind: 'demo', has_key: false, waits: false },
      { kind: 'openai', ...settings, has_key: false, waits: true },
    ]);
    const serving = async () =>
      (await there.store.agentBackends.running({ limit: 9, now: Date.now() })).flatMap((row) =>
        row.tenant_id === copy ? row.agent_id : [],
      );
    expect(await serving()).toEqual(['ag']);
    const set = await there.call(
      'PATCH',
      `/v1/tenants/${copy}/agents/second`,
      JSON.stringify({ backend: { kind: 'openai', ...settings, key: 'given-anew' } }),
    );
    expect([set.status, (await shown())[1]]).toEqual([200, { kind: 'openai', ...settings, has_key: true, waits: false }]);
    expect(await serving()).toEqual(['ag', 'second']);
    const tokens = (await there.store.tokens.list(copy)).filter(({ label }) => label === 'runner');
    expect(tokens.map(({ agent_id, revoked_at }) => [agent_id, revoked_at]).sort()).toEqual([
      ['ag', null],
      ['second', null],
    ]);
  });

  test.each([
    ['no gzip', () => Buffer.from('hello')],
    ['half of one', () => exported.subarray(0, exported.length >> 1)],
    ['one with a flipped byte', () => Buffer.from(exported.map((byte, at) => (at === exported.length >> 1 ? byte ^ 0xff : byte)))],
    ['nothing', () => Buffer.alloc(0)],
  ])('what is %s is refused, and nothing of it stays', async (_, make) => {
    const before = await there.store.tenants.list({ limit: 100 });
    const answer = await there.call('POST', '/v1/tenants/import', new Uint8Array(make()), 'application/gzip');
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([400, 'unsupported']);
    expect(await there.store.tenants.list({ limit: 100 })).toEqual(before);
  });

  test('deletion says what each store confirmed, and leaves nothing but the audit; others stay as they were', async () => {
    const before = await contents(here.store, other);
    const counted = Object.fromEntries(await here.archive.count(tenant_id));
    const answer = await here.call('DELETE', `/v1/tenants/${tenant_id}`);
    const receipt = (await answer.json()) as { stores: Record<string, unknown> };
    expect(receipt).toMatchObject({
      tenant_id,
      stores: {
        sockets: { told: true },
        outbox: { removed: true },
        media: { removed: true, files: 2 },
        rows: { removed: counted, left: {} },
      },
    });
    expect(counted).toMatchObject({ tenant: 1, message: 1_200, channel: 3 });
    expect(await here.archive.count(tenant_id)).toEqual(new Map());
    expect(await here.media.stat(tenant_id, 'ob_1' as ObjectId)).toBeUndefined();
    expect((await here.call('GET', `/v1/tenants/${tenant_id}`)).status).toBe(404);
    expect((await here.store.audit.list(null, 1))[0]).toMatchObject({ action: 'tenant.deleted', subject: JSON.stringify(receipt) });
    expect((await here.store.audit.list(tenant_id, 1))[0]).toMatchObject({ action: 'tenant.delete' });
    expect(await contents(here.store, other)).toEqual(before);
  });
});
