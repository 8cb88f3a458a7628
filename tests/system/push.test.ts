/** Pushes on real processes and services: BullMQ, Postgres and sockets to providers that check what they get. */
import { natsBus, subjects } from '@iris/bus';
import { makeToken, type TokenId } from '@iris/protocol';
import { systemClock } from '@iris/runtime';
import { tokenHash } from '@iris/store';
import { type Cluster, type ClusterTenant, cluster, type Fakes, fcmError, serveFakes, type TestDevice, testDevice } from '@iris/testkit';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const lane = { chat_id: 'android:default', thread_id: null } as const;
let fakes: Fakes & { close(): Promise<void> };
let world: Cluster;
let tenant: ClusterTenant;
let phone: TestDevice;
const answer_url = () => `${world.edges[0]!.url.replace('ws:', 'http:').replace(/\/ws$/, '')}/push/answer`;

beforeAll(async () => {
  fakes = await serveFakes(systemClock);
  const settings = Object.entries(fakes.settings).map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : String(value)]);
  world = await cluster({
    edges: 2,
    sessions: 1,
    workers: 1,
    set: { ...Object.fromEntries(settings), push_claim_ms: 3_000, push_timeout_ms: 2_000, push_answer_url: 'http://edge.test/push/answer' },
  });
  tenant = await world.tenant();
  phone = await tenant.join('phone');
}, 120_000);
afterAll(async () => {
  await world?.close();
  await fakes?.close();
}, 60_000);

/** A device that was here a while ago. */
async function away(name: string, where: { kind: 'fcm' | 'ntfy' | 'webpush'; address: string; keys?: { p256dh: string; auth: string } }) {
  const at = Date.now() - 60_000;
  const device_id = name as never;
  const { tenant_id } = tenant;
  await world.store.devices.hello({ tenant_id, device_id, name, caps: {}, token_id: 'device-token' as never, at, max: 100 });
  await world.store.pushTargets.register(tenant_id, device_id, [where], at);
}
/** Providers stir nobody: looked at now and then. */
async function until<T>(found: () => T | undefined | false | Promise<T | undefined | false>, what: string): Promise<T> {
  const give_up = Date.now() + 60_000;
  for (;;) {
    const value = await found();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > give_up) throw new Error(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const ledger = (device: string) => world.store.pushLedger.explain(tenant.tenant_id, device as never, { limit: 10 });

test('PSH3 PSH9 PSH17: each provider is spoken to; a worker is killed while it sends; a notification answers', async () => {
  const { endpoint, keys } = fakes.webpush.subscribe('browser', `${fakes.base}/webpush`);
  await away('android', { kind: 'fcm', address: 'token' });
  await away('browser', { kind: 'webpush', address: endpoint, keys });
  await away('desk', { kind: 'ntfy', address: 'desk' });
  const agent = tenant.agent();
  await agent.connect();

  agent.say('message', { message_id: 'one', role: 'cron', text: 'good morning' }, lane);
  await until(() => fakes.fcm.accepted[0] && fakes.webpush.accepted[0] && fakes.ntfy.published[0], 'not all providers were told');
  expect(fakes.fcm.accepted[0]!.data.body).toBe('good morning');
  expect(fakes.webpush.accepted[0]!.payload.body).toBe('good morning');
  expect(fakes.ntfy.published[0]!.message).toBe('good morning');

  // The provider has taken it, and the worker dies before it hears so.
  fakes.fcm.set('token', { silent: true, times: 1 });
  agent.say('message', { message_id: 'two', role: 'cron', text: 'killed' }, lane);
  await until(() => fakes.fcm.accepted.length === 2, 'the second was not sent');
  await world.workers[0]!.kill();
  await world.startWorker();
  await until(() => fakes.fcm.accepted.length === 3, 'nobody took it up');
  const [, second, third] = fakes.fcm.accepted;
  expect([third!.data.cursor, third!.data.tag]).toEqual([second!.data.cursor, second!.data.tag]);

  await phone.send('may I?');
  const turn = await agent.turn();
  turn.picker('confirm', { choices: [{ value: 'yes', label: 'Yes' }], title: 'Sure?' });
  const asked = await until(() => fakes.fcm.accepted.find(({ data }) => data.class === 'picker'), 'the question was not pushed');
  const post = (body: unknown) => fetch(answer_url(), { method: 'POST', body: JSON.stringify(body) });
  const answer = { token: asked.data.action_token, value: 'yes' };
  expect((await post(answer)).status).toBe(200);
  expect((await post(answer)).status).toBe(401);
  expect(await phone.next('picker.closed')).toMatchObject({ payload: { value: 'yes' } });
  await until(
    () => fakes.fcm.accepted.some(({ data }) => data.type === 'withdraw' && data.tag === asked.data.tag),
    'it was not taken back',
  );
  turn.end();
  await phone.next('agent.idle');
  expect((await ledger('phone')).map(({ state }) => state)).toEqual(expect.not.arrayContaining(['sent', 'failed', 'pending']));
}, 120_000);

test('C133 HEL15 PSH7: a token is revoked: within a second its sockets are closed on every edge, in the midst of a stream and an upload; no push follows', async () => {
  const { tenant_id } = tenant;
  const { store } = world;
  const token_id = 'stolen' as TokenId;
  const token = makeToken('device', tenant_id, 'secret-of-stolen'.padEnd(32, '0'));
  await store.tokens.create({
    tenant_id,
    token_id,
    kind: 'device',
    hash: tokenHash(token),
    device_id: null,
    agent_id: null,
    created_at: 1,
  });
  const thieves = [0, 1].map((edge) =>
    testDevice({ device_id: `thief ${edge}`, token, patience: world.patience, dial: (events) => tenant.dial(edge)(events) }),
  );
  for (const thief of thieves) expect((await thief.join()).type).toBe('hello.ack');
  // One that is away, and was just refused.
  const at = Date.now() - 60_000;
  await store.devices.hello({ tenant_id, device_id: 'thief away' as never, name: '', caps: {}, token_id, at, max: 100 });
  await store.pushTargets.register(tenant_id, 'thief away' as never, [{ kind: 'fcm', address: 'stolen' }], at);
  fakes.fcm.set('stolen', { answer: fcmError(503, 'UNAVAILABLE'), times: 1 });
  const agent = tenant.agent({ install_id: 'third' });
  await agent.connect();
  agent.say('message', { message_id: 'waits', role: 'cron', text: 'waits for its next try' }, lane);
  await until(() => fakes.fcm.asked.some(({ token: asked }) => asked === 'stolen'), 'the provider was not asked');
  await phone.send('tell me');
  const turn = await agent.turn();
  turn.start();
  thieves[1]!.say('media.upload.start', { media_ref: 'mu', kind: 'file', mime: 'text/plain', size: 1_000_000, filename: 'a.txt' });
  let n = 0;
  const going = setInterval(() => {
    turn.update('x'.repeat(++n));
    if (thieves[1]!.connected) thieves[1]!.raw(new Uint8Array(1_000));
  }, 20);
  const bus = await natsBus({ servers: [world.nats.url] });
  try {
    await thieves[0]!.next('message.update');
    await store.tokens.revoke(tenant_id, token_id, Date.now());
    bus.publish(subjects.control, new TextEncoder().encode(JSON.stringify({ kind: 'revoked', tenant_id, token_id })));
    const began = Date.now();
    for (const thief of thieves) expect((await thief.closed()).code).toBe(4403);
    expect(Date.now() - began).toBeLessThan(1_000);
    const heard = thieves.map(({ received }) => received.all.length);
    const asked = fakes.fcm.asked.length;
    agent.say('message', { message_id: 'after', role: 'cron', text: 'after it' }, lane);
    turn.end();
    await phone.next('agent.idle');
    // Its next try would have come by now, and the look at the new frame.
    await until(() => fakes.fcm.asked.slice(asked).some(({ token: one }) => one === 'token'), 'nobody else was pushed');
    await until(async () => (await ledger('thief away'))[0]?.state !== 'pending', 'what waited is still to be sent');
    expect(fakes.fcm.accepted.filter(({ token: one }) => one === 'stolen')).toEqual([]);
    expect((await ledger('thief away')).map(({ state }) => state)).not.toContain('sent');
    expect(thieves.map(({ received }) => received.all.length)).toEqual(heard);
    expect((await store.media.byRef(tenant_id, 'thief 1' as never, 'mu'))?.state).not.toBe('uploaded');
  } finally {
    clearInterval(going);
    await bus.close();
  }
}, 120_000);

test('PSH3 C65: Redis is killed and comes back empty between frame and push: it is pushed all the same, once, and to nobody who has it', async () => {
  const agent = tenant.agent({ install_id: 'second' });
  await agent.connect();
  const before = fakes.fcm.accepted.length;
  agent.say('message', { message_id: 'three', role: 'cron', text: 'after the loss' }, lane);
  await phone.next((frame) => frame.payload.text === 'after the loss');
  await world.redis.kill();
  await world.redis.start();
  await until(() => fakes.fcm.accepted.slice(before).some(({ data }) => data.body === 'after the loss'), 'it was not pushed');
  const rows = await ledger('phone');
  expect(rows.filter(({ state }) => state === 'sent')).toEqual([]);
  expect(fakes.fcm.accepted.slice(before).filter(({ data }) => data.body === 'after the loss')).toHaveLength(1);
}, 120_000);
