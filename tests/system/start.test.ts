/** `npm start` as a person knows it: in one process, and as a cluster. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { freePort, isAlive, isFree } from '@iris/devstack';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { type Dev, starts } from './started.js';

jest.setTimeout(300_000);
let place: ReturnType<typeof starts>;
beforeEach(() => {
  place = starts();
});
afterEach(() => place.close());

/** Ports for edges, far from everyone else’s. */
const somePort = async () => 20_000 + ((await freePort()) % 20_000);
const pidsOf = (dev: Dev) => [...new Set(dev.processes.map(({ pid }) => pid))];
const portOf = (url: string) => Number(new URL(url).port);

test('one process: a conversation, and nothing left when it stops; the second start remembers', async () => {
  const port = await somePort();
  const first = place.start(place.dir(), ['--port', String(port)]);
  const dev = await first.ready();
  expect(dev.edges).toEqual([`ws://127.0.0.1:${port}/ws`]);
  expect(dev.agent_url).toBe(`ws://127.0.0.1:${port}/agent`);
  expect(dev.tenants).toHaveLength(1);
  expect(dev.tenants[0]).toMatchObject({ tenant_id: dev.tenant_id, device_token: dev.device_token });
  expect(dev.processes.map(({ part }) => part).sort()).toEqual(['control', 'edge', 'postgres', 'session', 'web', 'worker']);
  expect(dev.processes.every(({ pid }) => isAlive(pid))).toBe(true);
  expect(first.output()).toContain(dev.web_url);

  const device = await first.device('dev_a');
  const echo = await device.send('hello');
  expect(echo).toMatchObject({ type: 'message', payload: { role: 'user', text: 'hello' } });
  await device.next('message.stop');
  await device.next('agent.idle');
  device.close();

  expect(await (await fetch(dev.web_url!)).text()).toContain('<title>');
  expect(await (await fetch(dev.metrics[0]!)).text()).toContain('iris_edge_connections');
  const tenants = await fetch(`${dev.control_url}/v1/tenants`, { headers: { authorization: `Bearer ${dev.admin_token}` } });
  expect(await tenants.json()).toMatchObject({ tenants: [{ tenant_id: dev.tenant_id, name: 'Demo' }] });

  // As under npm: the terminal and npm both say it.
  first.kill('SIGINT');
  first.kill('SIGINT');
  expect(await first.ended).toEqual({ code: 0, signal: null });
  expect(first.hasDev()).toBe(false);
  expect(pidsOf(dev).filter(isAlive)).toEqual([]);
  for (const url of [...dev.edges, dev.control_url, dev.web_url!, ...dev.metrics, dev.services.postgres!])
    expect(await isFree(portOf(url))).toBe(true);

  const begun = performance.now();
  const second = place.start(place.dir(), ['--port', String(port)]);
  const again = await second.ready();
  expect(performance.now() - begun).toBeLessThan(10_000);
  expect([again.tenant_id, again.device_token]).toEqual([dev.tenant_id, dev.device_token]);
  const back = await second.device('dev_a');
  const history = await back.historyAll({ chat_id: 'android:default' });
  expect(history.map(({ role }) => role)).toEqual(['user', 'assistant']);
  back.close();
});

test('two starts with other folders and ports do not meet; --fresh forgets; a third in a folder in use is refused', async () => {
  const [a, b] = [await somePort(), await somePort()];
  const one = place.start(place.dir('one'), ['--port', String(a), '--no-web', '--agent', 'none', '--tenants', '3']);
  const other = place.start(place.dir('other'), ['--port', String(b), '--no-web', '--agent', 'none']);
  const [devOne, devOther] = await Promise.all([one.ready(), other.ready()]);
  expect(devOne.tenants).toHaveLength(3);
  expect(new Set(devOne.tenants.map(({ tenant_id }) => tenant_id)).size).toBe(3);
  expect(devOne.web_url).toBeUndefined();
  expect([devOne.agent_token, devOne.agent_id].every((text) => text.length > 0)).toBe(true);
  expect(devOne.tenant_id).not.toBe(devOther.tenant_id);
  const stranger = await fetch(`${devOther.control_url}/v1/tenants/${devOne.tenant_id}`, {
    headers: { authorization: `Bearer ${devOther.admin_token}` },
  });
  expect(stranger.status).toBe(404);

  const third = place.start(place.dir('one'), ['--port', String(await somePort())]);
  expect(await third.ended).toMatchObject({ code: 1 });
  expect(third.output()).toContain(`in use by another start (pid ${one.pid})`);
  expect(one.hasDev()).toBe(true);

  one.kill('SIGTERM');
  expect(await one.ended).toEqual({ code: 0, signal: null });
  const fresh = place.start(place.dir('one'), ['--port', String(a), '--no-web', '--agent', 'none', '--fresh']);
  expect((await fresh.ready()).tenant_id).not.toBe(devOne.tenant_id);
});

test('what cannot be is said in one line, and leaves nothing running', async () => {
  const port = await somePort();
  const squatter = createServer();
  await new Promise<void>((resolve) => squatter.listen(port, '127.0.0.1', resolve));
  const foreign = place.dir('foreign');
  mkdirSync(foreign);
  writeFileSync(join(foreign, 'thesis.txt'), '');
  try {
    const cases: [string, string[], string][] = [
      [place.dir(), ['--port', String(port)], `port ${port} is taken: choose another with --port`],
      [place.dir(), ['--set', 'nosuch=1'], 'nosuch: no such setting'],
      [place.dir(), ['--set', 'ping_ms=soon'], 'ping_ms'],
      [place.dir(), ['--colour'], "Unknown option '--colour'"],
      [place.dir(), ['--agent', 'openai'], '--agent openai needs --agent-url'],
      [foreign, [], 'not empty and not ours'],
    ];
    for (const [dir, args, what] of cases) {
      const start = place.start(dir, args);
      expect([args, (await start.ended).code]).toEqual([args, 1]);
      expect(start.output()).toContain(what);
      expect(start.output()).not.toMatch(/^ {4}at /m);
    }
  } finally {
    squatter.close();
  }
});

test('settings reach the parts', async () => {
  const start = place.start(place.dir(), [
    '--port',
    String(await somePort()),
    '--no-web',
    '--agent',
    'none',
    '--set',
    'sends_burst=3',
    '--set',
    'sends_per_second=1',
  ]);
  await start.ready();
  const device = await start.device('dev_a');
  const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => device.send(`m${i}`)));
  expect(answers.filter(({ type }) => type === 'message').length).toBeLessThan(6);
  expect(answers.some(({ type, payload }) => type === 'error' && payload.code === 'rate_limited')).toBe(true);
  device.close();
});

test('a cluster: one order on two edges; what is killed comes back; nothing is left when it stops', async () => {
  const port = await somePort();
  const start = place.start(place.dir(), ['--cluster', '--edges', '2', '--sessions', '2', '--port', String(port)]);
  const dev = await start.ready();
  expect(dev.edges).toEqual([`ws://127.0.0.1:${port}/ws`, `ws://127.0.0.1:${port + 1}/ws`]);
  const count = (part: string) => dev.processes.filter((one) => one.part === part).length;
  expect(['edge', 'session', 'worker', 'control', 'web', 'agent', 'redis', 'nats', 'postgres'].map(count)).toEqual([
    2, 2, 1, 1, 1, 1, 1, 1, 1,
  ]);
  expect(new Set(dev.processes.map(({ pid }) => pid)).size).toBe(dev.processes.length);
  for (const url of dev.metrics) expect((await fetch(url)).status).toBe(200);

  const [a, b] = [await start.device('dev_a', 0), await start.device('dev_b', 1)];
  const texts = Array.from({ length: 10 }, (_, i) => `message ${i}`);
  await Promise.all(texts.map((text, i) => (i % 2 === 0 ? a : b).send(text)));
  const seen = (device: typeof a) =>
    device
      .frames('message')
      .filter(({ payload }) => payload.role === 'user')
      .map(({ payload }) => payload.text);
  for (const device of [a, b]) while (seen(device).length < 10) await device.next('message');
  expect(seen(a)).toEqual(seen(b));
  expect([...(seen(a) as string[])].sort()).toEqual(texts);

  // An agent that the gateway runs itself, from the admin API alone, in a channel of its own; and without it.
  const api = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${dev.control_url}/v1/tenants/${dev.tenant_id}/${path}`, {
      method,
      headers: { authorization: `Bearer ${dev.admin_token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect(response.ok).toBe(true);
    return response.status === 204 ? {} : ((await response.json()) as Record<string, unknown>);
  };
  const { agent_id } = await api('POST', 'agents', { name: 'Second', backend: { kind: 'demo' } });
  const { chat_id } = (await a.request('channel.create', { name: 'Second' })).payload as { chat_id: string };
  await api('PATCH', `channels/${encodeURIComponent(chat_id)}`, { agent_id });
  const answered = (text: string) =>
    Promise.all([b.send(text, { chat_id }), a.next((frame) => frame.type === 'agent.idle' && frame.chat_id === chat_id)]);
  await answered('for the second');
  expect(await api('GET', 'agents')).toMatchObject({ agents: [{ is_default: true }, { agent_id, linked: true }] });
  await api('DELETE', `agents/${String(agent_id)}`);
  await answered('for the default one');

  for (const part of ['session', 'edge', 'redis', 'nats', 'postgres']) {
    const victim = start.dev().processes.find((one) => one.part === part)!;
    const back = start.said(new RegExp(`${part} ${victim.index} runs again`));
    process.kill(victim.pid, 'SIGKILL');
    await back;
    const next = start.dev().processes.find((one) => one.part === part && one.index === victim.index)!;
    expect(next.port).toBe(victim.port);
    expect(next.pid).not.toBe(victim.pid);
  }
  const c = await start.device('dev_c', 0);
  expect(await c.send('after all that')).toMatchObject({ type: 'message' });
  for (const device of [a, b, c]) device.close();

  const last = start.dev();
  start.kill('SIGINT');
  expect(await start.ended).toEqual({ code: 0, signal: null });
  expect(start.hasDev()).toBe(false);
  expect(pidsOf(last).filter(isAlive)).toEqual([]);
});

test('a cluster whose starter is killed is gone too', async () => {
  const start = place.start(place.dir(), [
    '--cluster',
    '--edges',
    '1',
    '--sessions',
    '1',
    '--port',
    String(await somePort()),
    '--no-web',
    '--agent',
    'none',
    '--no-restart',
  ]);
  const dev = await start.ready();
  start.kill('SIGKILL');
  await start.ended;
  // The next start waits for what is still going, and ends what is not.
  const next = place.start(place.dir(), ['--port', String(await somePort()), '--no-web', '--agent', 'none']);
  await next.ready();
  expect(pidsOf(dev).filter(isAlive)).toEqual([]);
});
