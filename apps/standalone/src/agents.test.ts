import type { RunningAgent, StartAgentOptions } from '@iris/agent';
import { type Control, memoryHub, subjects } from '@iris/bus';
import { buildApi, defaultControlConfig } from '@iris/control';
import type { AgentId, TenantId } from '@iris/protocol';
import { sealing, silentLog } from '@iris/runtime';
import { manualClock, seededRandom } from '@iris/runtime/testing';
import { memoryStore } from '@iris/store';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startAgents } from './agents.js';

const admin_token = 'admin-token-of-the-test';
const sealing_secret = ['the sealing secret of these tests'];
let rig: Awaited<ReturnType<typeof begin>>;

/** The admin API and the runner on one store and bus; the runner starts nothing, and writes down what it was told. */
async function begin() {
  const clock = manualClock();
  const store = memoryStore(clock);
  const hub = memoryHub({ clock, deliver: ({ run }) => run() });
  const random = seededRandom(7);
  const api = await buildApi(
    { store, bus: hub.connect(), clock, random, log: silentLog },
    { ...defaultControlConfig, admin_token, sealing_secret },
  );
  const url = await api.listen({ port: 0, host: '127.0.0.1' });
  const told: string[] = [];
  const started: StartAgentOptions[] = [];
  const ends: ((end: Awaited<RunningAgent['stopped']>) => void)[] = [];
  const agents = await startAgents({
    gateway: 'ws://gateway/agent',
    spool_dir: '/spool',
    store,
    bus: hub.connect(),
    seal: sealing(sealing_secret, random),
    own: { backend: 'openai', url: 'http://127.0.0.1:1/v1' },
    model: { private_addresses: true, allow_hosts: [], allow_addresses: [], history_chars: 1, model_retries: 0, silence_ms: 1_000 },
    reach: { private_addresses: false, allow_hosts: ['*.example'], allow_addresses: [] },
    pace_ms: 0,
    clock,
    log: silentLog,
    start(options): RunningAgent {
      const what = `${options.backend} ${options.url ?? '-'} ${options.key ?? '-'} ${options.model?.private_addresses}`;
      started.push(options);
      told.push(`+ ${what}`);
      return {
        online: true,
        stop: async () => {
          told.push(`- ${what}`);
          return { reason: 'stopped', code: 1000, message: '' };
        },
        stopped: new Promise((resolve) => void ends.push(resolve)),
      };
    },
  });
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${admin_token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const response = await fetch(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return (text === '' ? undefined : JSON.parse(text)) as Record<string, string>;
  };
  return { clock, store, hub, agents, told, started, ends, call, close: () => Promise.all([agents.stop(), api.close()]) };
}
beforeEach(async () => {
  rig = await begin();
});
afterEach(() => rig.close());

/** What the runner was told since the last time; what the API announced has reached it. */
async function told(): Promise<string[]> {
  await rig.clock.advance(1_000);
  return rig.told.splice(0);
}

test('the runner follows what the admin API says: made, changed, suspended, resumed, removed', async () => {
  const { call, store } = rig;
  const { tenant_id } = (await call('POST', '/v1/tenants', { name: 'Home' })) as { tenant_id: TenantId };
  const of = `/v1/tenants/${tenant_id}`;
  expect(await told()).toEqual([]);
  const backend = { kind: 'openai', url: 'https://models.example/v1', key: 'k' };
  const { agent_id } = (await call('POST', `${of}/agents`, { name: 'Second', backend })) as { agent_id: AgentId };
  expect(await told()).toEqual(['+ openai https://models.example/v1 k false']);
  const [{ token }] = rig.started as [StartAgentOptions];
  await call('PATCH', `${of}/agents/${agent_id}`, { name: 'Renamed' });
  expect(await told()).toEqual([]);
  await call('PATCH', `${of}/agents/${agent_id}`, { backend: { kind: 'demo' } });
  expect(await told()).toEqual(['- openai https://models.example/v1 k false', '+ demo - - false']);
  expect(rig.started.at(-1)!.token).toBe(token);
  await call('PATCH', of, { state: 'suspended' });
  expect(await told()).toEqual(['- demo - - false']);
  await call('PATCH', of, { state: 'active' });
  expect(await told()).toEqual(['+ demo - - false']);
  await call('DELETE', `${of}/agents/${agent_id}`);
  expect(await told()).toEqual(['- demo - - false']);
  expect((await store.tokens.list(tenant_id)).filter((one) => one.agent_id === agent_id && one.revoked_at === null)).toEqual([]);
});

test('what was not heard is seen within half a minute; what cannot be opened keeps nobody from being served', async () => {
  const { call, store, clock } = rig;
  const { tenant_id, agent_id } = (await call('POST', '/v1/tenants', { name: 'Home' })) as { tenant_id: TenantId; agent_id: AgentId };
  const row = { kind: 'demo', settings: {}, has_key: false, changed_at: 1 };
  const { token_id } = (await store.tokens.list(tenant_id)).find((one) => one.agent_id === agent_id)!;
  await store.agentBackends.set({ ...row, tenant_id, agent_id, token_id, sealed: 's1.of-another-secret' });
  await call('PATCH', `/v1/tenants/${tenant_id}/agents/${agent_id}`, { name: 'x' });
  expect(await told()).toEqual([]);
  // As by an instance whose announcement was lost.
  const sealed = sealing(sealing_secret, seededRandom(9)).seal(JSON.stringify({ token: 'iris-agent.x.y' }), `${tenant_id}\n${agent_id}`);
  await store.agentBackends.set({ ...row, tenant_id, agent_id, token_id, sealed });
  await clock.advance(30_000);
  expect(await told()).toEqual(['+ demo - - false']);
});

test('the operator’s own backend answers for a tenant until somebody gives its agent another, and again when that is taken away', async () => {
  const { call, agents } = rig;
  const made = (await call('POST', '/v1/tenants', { name: 'Home' })) as never as Parameters<typeof agents.attach>[0][number];
  await agents.attach([made]);
  expect(await told()).toEqual(['+ openai http://127.0.0.1:1/v1 - true']);
  const agent = `/v1/tenants/${made.tenant_id}/agents/${made.agent_id}`;
  await call('PATCH', agent, { backend: { kind: 'demo' } });
  expect(await told()).toEqual(['- openai http://127.0.0.1:1/v1 - true', '+ demo - - false']);
  await call('PATCH', agent, { backend: null });
  expect(await told()).toEqual(['- demo - - false', '+ openai http://127.0.0.1:1/v1 - true']);
  expect(agents.attached).toBe(true);
});

test('of two runners the one that attached last has an agent; the other takes it when the link is gone', async () => {
  const { call, store, clock } = rig;
  const { tenant_id } = (await call('POST', '/v1/tenants', { name: 'Home' })) as { tenant_id: TenantId };
  const made = await call('POST', `/v1/tenants/${tenant_id}/agents`, { name: 'Second', backend: { kind: 'demo' } });
  const agent_id = made.agent_id as AgentId;
  expect(await told()).toEqual(['+ demo - - false']);
  const link = { agent_id, install_id: 'i' as never, boot_id: 'b', edge_id: 'e' as never, connection_id: 'c' as never, caps: {} };
  await store.agents.attach(tenant_id, { ...link, at: clock.now() });
  rig.ends.at(-1)!({ reason: 'replaced', code: 4409, message: '' });
  await clock.advance(60_000);
  expect(await told()).toEqual([]);
  await store.agents.detach(tenant_id, agent_id, 1, clock.now());
  await clock.advance(30_000);
  expect(await told()).toEqual(['+ demo - - false']);
});

test('words that are not about agents are passed over', async () => {
  const bus = rig.hub.connect();
  for (const control of [{ kind: 'restarting' }, { kind: 'changed', tenant_id: 't' as TenantId, what: 'channels' }] satisfies Control[])
    bus.publish(subjects.control, Buffer.from(JSON.stringify(control)));
  expect(await told()).toEqual([]);
});
