/**
 * One stack's tenant moves to another: said, uploaded and answered in one process on its embedded adapters, exported, and imported into a cluster of
 * processes on servers of its own; then the other way round. What its devices see is the same on both.
 */
import { freePort } from '@iris/devstack';
import { dialUrl, historiesOf, lane, type Payload, pull, realPatience, type TestDevice, testDevice, upload } from '@iris/testkit';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { type Dev, starts } from './started.js';

jest.setTimeout(300_000);
const place = starts();
let here: Dev;
let there: Dev;

const start = async (name: string, more: readonly string[]) =>
  place.start(place.dir(name), ['--port', String(20_000 + ((await freePort()) % 20_000)), '--no-web', ...more]).ready();
beforeAll(async () => {
  here = await start('here', []);
  there = await start('there', ['--cluster', '--edges', '1', '--sessions', '1', '--workers', '1', '--agent', 'none']);
});
afterAll(() => place.close());

const call = (dev: Dev, method: string, path: string, body?: Uint8Array<ArrayBuffer>) =>
  fetch(`${dev.control_url}/v1/tenants/${path}`, {
    method,
    headers: { authorization: `Bearer ${dev.admin_token}`, ...(body === undefined ? {} : { 'content-type': 'application/gzip' }) },
    ...(body === undefined ? {} : { body }),
  });
async function join(dev: Dev, token: string, name: string): Promise<TestDevice> {
  const device = testDevice({ device_id: name, token, dial: dialUrl(dev.edges[0]!), patience: realPatience(20_000) });
  const answer = await device.join();
  if (answer.type !== 'hello.ack') throw new Error(JSON.stringify(answer));
  return device;
}
const file = Buffer.from('bytes of a file, '.repeat(20_000));
const words = ['saffron', '天气', 'übermorgen', 'quarterly'];

/** Everything that a device can see: lanes and their names, histories, what is found, and what files hold. */
async function seen(device: TestDevice) {
  const histories = [...(await historiesOf(device))].sort(([one], [other]) => (one < other ? -1 : 1));
  const hits: [string, unknown][] = [];
  for (const query of words) {
    const { payload } = await device.request('search', { query, scope: 'all' });
    hits.push([query, (payload.hits as Payload[]).map(({ message_id, chat_id }) => [message_id, chat_id])]);
  }
  const files: [string, boolean][] = [];
  for (const entry of histories.flatMap(([, rows]) => rows).flatMap(({ media }) => (media ?? []) as { media_id: string }[]))
    files.push([entry.media_id, (await pull(device, entry.media_id)).bytes.equals(file)]);
  const channels = (device.connections.at(-1)!.ack!.payload.channels as Payload[]).map(({ chat_id, thread_id, name }) => [
    chat_id,
    thread_id,
    name,
  ]);
  return { histories, hits, files, channels };
}

test('every message, channel and file is there and searchable, and the other way round; the old token opens nothing there', async () => {
  const author = await join(here, here.device_token, 'author');
  const { payload: channel } = await author.request('channel.create', { name: 'Recipes' });
  const { payload: thread } = await author.request('channel.create', {
    kind: 'thread',
    parent_chat_id: channel.chat_id,
    name: 'Rice',
  });
  const inThread = { chat_id: channel.chat_id!, thread_id: thread.thread_id! };
  for (const [scope, text] of [
    [lane, `the ${words[0]} is in the ${words[3]} report`],
    [{ chat_id: channel.chat_id! }, `${words[1]}预报`],
    [inThread, `${words[2]} kochen`],
  ] as const) {
    await author.send(text, scope);
    await author.next('agent.idle');
  }
  const uploaded = await upload(author, 'mu_file', file);
  expect(uploaded.type).toBe('media.upload.ack');
  await author.request('message.send', { text: 'with a file', media_refs: ['mu_file'] }, lane);
  await author.next('agent.idle');
  author.close();

  const before = await join(here, here.device_token, 'reader');
  const was = await seen(before);
  before.close();
  // Four of ours, each answered; each word in what was said and in what was answered to it.
  expect(was.histories.flatMap(([, rows]) => rows).length).toBeGreaterThanOrEqual(8);
  for (const [query, hits] of was.hits) expect([query, (hits as unknown[]).length]).toEqual([query, expect.any(Number)]);
  expect(was.hits.every(([, hits]) => (hits as unknown[]).length > 0)).toBe(true);
  expect(was.files).toEqual([[expect.stringMatching(/^md_/), true]]);

  let archive = await call(here, 'GET', `${here.tenant_id}/export`);
  for (const [dev, other] of [
    [there, here],
    [here, there],
  ] as const) {
    expect(archive.status).toBe(200);
    const imported = await call(dev, 'POST', 'import', new Uint8Array(await archive.arrayBuffer()));
    const { tenant_id, device_token } = (await imported.json()) as { tenant_id: string; device_token: string };
    expect(imported.status).toBe(201);
    const device = await join(dev, device_token, 'reader');
    expect(await seen(device)).toEqual(was);
    // It goes on there: what is said now is said after all that came along.
    const said = await device.send('and on it goes', inThread);
    expect((await device.historyAll(inThread)).at(-1)).toMatchObject({ message_id: said.payload.message_id! });
    await device.request('message.delete', { message_ids: [said.payload.message_id!] }, inThread);
    device.close();
    if (other === here) {
      await expect(join(dev, here.device_token, 'old')).rejects.toThrow('auth');
      archive = await call(dev, 'GET', `${tenant_id}/export`);
    }
  }
});
