/**
 * How long an answer takes that names another tenant's id, beside one that names an id that never was: frame by frame and route by route, asked in
 * turns, as the ratio of the medians. What an id names must not be told by time either. Needs a build, redis-server and nats-server.
 *
 *   node tests/load/foreign-ids.mjs [--rounds 400] [--most 1.1]
 *
 * Fails when a ratio is further from 1 than `--most`, twice: a machine that does something else for a moment tells nothing.
 */
import { parseArgs } from 'node:util';
import { buildApi, defaultControlConfig } from '@iris/control';
import { makeToken } from '@iris/protocol';
import { silentLog, systemClock, systemRandom } from '@iris/runtime';
import { tokenHash } from '@iris/store';
import { cluster } from '@iris/testkit';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '400' }, most: { type: 'string', default: '1.1' } } });
const [rounds, most] = [Number(values.rounds), Number(values.most)];
const lane = { chat_id: 'android:default' };

const system = await cluster({ edges: 1, sessions: 1 });
const free = Object.fromEntries(
  ['frames', 'sends', 'tenant_sends'].flatMap((of) => [
    [`${of}_per_second`, 100_000],
    [`${of}_burst`, 1_000_000],
  ]),
);
const [owner, stranger] = [await system.tenant(free), await system.tenant(free)];
const owners = await owner.join('phone');
const agent = owner.agent();
await agent.connect();
const made =
  (await owners.request('channel.create', { name: 'mine' })).chat_id ??
  (await owners.request('channel.create', { name: 'mine' })).payload.chat_id;
const said = await owners.send('secret', { chat_id: made });
const turn = await agent.turn();
turn.picker('choice', { choices: [{ value: 'y', label: 'Y' }] });
const picker_id = (await owners.next('picker.choice')).payload.picker_id;
const message_id = said.payload.message_id;
const at = Date.now();
const media_id = 'md_of_the_owner1';
const object_id = 'ob_of_the_owner1';
await system.store.media.insert(
  {
    ...{
      tenant_id: owner.tenant_id,
      media_id,
      media_ref: 'mu_of_the_owner1',
      device_id: 'phone',
      object_id,
      state: 'attached',
      processed: true,
    },
    ...{
      kind: 'file',
      mime: 'text/plain',
      size: 3,
      filename: 'a.txt',
      sha256: '0'.repeat(64),
      uploaded_sha256: '0'.repeat(64),
      details: {},
    },
    created_at: at,
  },
  { object_id, size: 3, sha256: '0'.repeat(64) },
);
const thread_id = (await owners.request('channel.create', { kind: 'thread', parent_chat_id: made, name: 'mine too' })).payload.thread_id;
const [{ agent_id }] = await system.store.agents.list(owner.tenant_id);
await system.store.tokens.create({
  ...{ tenant_id: owner.tenant_id, token_id: 'tk_of_the_owner1', kind: 'device', label: '', hash: tokenHash('a token of the owner') },
  ...{ device_id: null, agent_id: null, role: null, created_at: at, expires_at: null },
});
const device = await stranger.join('laptop');
const never = (id) => `${id.slice(0, -1)}${id.endsWith('7') ? '8' : '7'}`;

const frames = {
  'history chat_id': [made, (id) => device.request('history', {}, { chat_id: id })],
  'history before_message_id': [message_id, (id) => device.request('history', { before_message_id: id }, lane)],
  'channel.rename chat_id': [made, (id) => device.request('channel.rename', { name: 'x' }, { chat_id: id })],
  'channel.delete chat_id': [made, (id) => device.request('channel.delete', {}, { chat_id: id })],
  'channel.set_default chat_id': [made, (id) => device.request('channel.set_default', {}, { chat_id: id })],
  'message.send chat_id': [made, (id) => device.request('message.send', { text: 'x' }, { chat_id: id })],
  'message.send thread_id': [thread_id, (id) => device.request('message.send', { text: 'x' }, { ...lane, thread_id: id })],
  'message.send media_refs': ['mu_of_the_owner1', (id) => device.request('message.send', { text: 'x', media_refs: [id] }, lane)],
  'channel.create parent_chat_id': [made, (id) => device.request('channel.create', { kind: 'thread', parent_chat_id: id, name: 'x' })],
  'agent.steer chat_id': [made, (id) => device.request('agent.steer', { text: 'x' }, { chat_id: id })],
  'search chat_id': [made, (id) => device.request('search', { query: 'x', scope: 'chat' }, { chat_id: id })],
  'commands.catalog chat_id': [made, (id) => device.request('commands.catalog', {}, { chat_id: id })],
  'message.send reply_to': [message_id, (id) => device.request('message.send', { text: 'x', reply_to: id }, lane)],
  'read.receipt message_id': [message_id, (id) => device.request('read.receipt', { message_id: id }, lane)],
  'picker.select picker_id': [picker_id, (id) => device.request('picker.select', { picker_id: id, value: 'y' }, lane)],
  'agent.stop chat_id': [made, (id) => device.request('agent.stop', {}, { chat_id: id })],
  'media.pull media_id': [media_id, (id) => device.request('media.pull', { media_id: id }, lane)],
};

const admin_token = makeToken('admin', stranger.tenant_id, 'administrator'.padEnd(32, '0'));
await system.store.tokens.create({
  ...{ tenant_id: stranger.tenant_id, token_id: 'tk_admin', kind: 'admin', role: 'owner', label: '', hash: tokenHash(admin_token) },
  ...{ device_id: null, agent_id: null, created_at: Date.now(), expires_at: null },
});
const nobody = {
  publish() {},
  subscribe: () => ({ end() {} }),
  serve: () => ({ end() {} }),
  flush: async () => {},
  connected: true,
  onConnected: () => () => {},
};
const api = await buildApi(
  { store: system.store, bus: nobody, clock: systemClock, random: systemRandom, log: silentLog },
  { ...defaultControlConfig, admin_token: 'a bootstrap token' },
);
const call = async (method, url, payload) => {
  const headers = { authorization: `Bearer ${admin_token}` };
  const { statusCode, body } = await api.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) });
  return { type: statusCode, payload: { code: JSON.parse(body).error?.code, message: JSON.parse(body).error?.message } };
};
const own = `/v1/tenants/${stranger.tenant_id}`;
const routes = {
  'GET tenant': [owner.tenant_id, (id) => call('GET', `/v1/tenants/${id}`)],
  'GET devices': [owner.tenant_id, (id) => call('GET', `/v1/tenants/${id}/devices`)],
  'GET usage': [owner.tenant_id, (id) => call('GET', `/v1/tenants/${id}/usage`)],
  'DELETE device': ['phone', (id) => call('DELETE', `${own}/devices/${id}`)],
  'DELETE token': ['tk_of_the_owner1', (id) => call('DELETE', `${own}/tokens/${id}`)],
  'PATCH agent': [agent_id, (id) => call('PATCH', `${own}/agents/${id}`, { name: 'x' })],
  'POST token agent_id': [agent_id, (id) => call('POST', `${own}/tokens`, { kind: 'agent', agent_id: id })],
  'PATCH channel': [made, (id) => call('PATCH', `${own}/channels/${encodeURIComponent(id)}`, { agent_id: null })],
  'GET push': ['phone', (id) => call('GET', `${own}/devices/${id}/push`)],
  'GET trace': [message_id, (id) => call('GET', `${own}/messages/${id}/trace`)],
};

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
async function ratioOf(foreign, ask) {
  const times = { foreign: [], unknown: [] };
  const texts = new Set();
  for (let n = 0; n < rounds + 20; n++)
    for (const [how, id] of n % 2
      ? [
          ['foreign', foreign],
          ['unknown', never(foreign)],
        ]
      : [
          ['unknown', never(foreign)],
          ['foreign', foreign],
        ]) {
      const asked = performance.now();
      const { type, payload } = await ask(id);
      if (n >= 20) times[how].push(performance.now() - asked);
      texts.add(`${type} ${payload.code} ${payload.message}`);
    }
  return { ratio: median(times.foreign) / median(times.unknown), ms: median(times.unknown), texts };
}

let told = 0;
for (const [what, [foreign, ask]] of [...Object.entries(frames), ...Object.entries(routes)]) {
  const off = ({ ratio }) => Math.max(ratio, 1 / ratio) > most;
  let found = await ratioOf(foreign, ask);
  if (off(found)) found = await ratioOf(foreign, ask);
  const bad = off(found) || found.texts.size > 1;
  if (bad) told++;
  console.log(
    `${what.padEnd(28)} ${found.ratio.toFixed(3)}  of ${found.ms.toFixed(2)} ms  ${[...found.texts].join(' | ')}${bad ? '  TOLD' : ''}`,
  );
}
console.log(told === 0 ? 'nothing is told by time or text' : `${told} tell which is which`);
for (const one of [device, owners]) one.close();
agent.close();
await api.close();
await system.close();
process.exit(told === 0 ? 0 : 1);
