import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scriptedGateway } from '@iris/agent-link/testing';
import { silentLog, systemClock } from '@iris/runtime';
import { manualClock } from '@iris/runtime/testing';
import { describe, expect, test } from '@jest/globals';
import { type RunningAgent, type StartAgentOptions, startAgent } from './start-agent.js';
import { createTenantAgents, tenantAgents } from './tenants.js';

const one = { agent_token: 'iris-agent.a.0123456789abcdef', backend: 'openai', url: 'https://models.example/v1' } as const;
const two = { agent_token: 'iris-agent.b.0123456789abcdef', backend: 'demo' } as const;

/** Starts nothing, and writes down what it was told. */
function fakes(model = {}) {
  const told: string[] = [];
  const started: StartAgentOptions[] = [];
  const agents = createTenantAgents({
    gateway: 'ws://gateway/agent',
    spool_dir: '/spool',
    model: { private_addresses: false, allow_hosts: ['*.example'], ...model },
    clock: systemClock,
    log: silentLog,
    start(options): RunningAgent {
      if (options.url === 'https://broken') throw new TypeError('no address');
      started.push(options);
      told.push(`start ${options.token.slice(11, 12)} ${options.model?.agent_model ?? '-'}`);
      return {
        online: true,
        stop: async () => {
          told.push(`stop ${options.token.slice(11, 12)}`);
          return { reason: 'stopped', code: 1000, message: '' };
        },
        stopped: new Promise(() => {}),
      };
    },
  });
  return { agents, told, started };
}

describe('the list', () => {
  test.each([
    ['not JSON', '{', /not JSON/],
    ['no list', '{}', /the whole/],
    ['a backend there is not', JSON.stringify([{ ...two, backend: 'magic' }]), /entry 0\/backend/],
    ['a field that is not a tenant’s to set', JSON.stringify([{ ...one, allow_hosts: ['internal'] }]), /entry 0/],
    ['an endpoint without an address', JSON.stringify([two, { ...one, url: undefined }]), /entry 1\/url/],
    ['a token twice', JSON.stringify([two, two]), /entry 1: its token/],
  ])('%s: refused, and says where', (_, text, why) => {
    expect(() => tenantAgents(text)).toThrow(why);
    try {
      tenantAgents(text);
    } catch (error) {
      expect((error as Error).message).not.toContain('0123456789abcdef');
    }
  });
});

describe('serving it', () => {
  test('each with its own settings, under the operator’s limits and in a folder of its own', async () => {
    const { agents, started } = fakes();
    await agents.serve(tenantAgents(JSON.stringify([{ ...one, key: 'k', model: 'large', system_prompt: 'Be brief.' }, two])));
    expect(started).toMatchObject([
      {
        token: one.agent_token,
        backend: 'openai',
        url: one.url,
        key: 'k',
        model: { private_addresses: false, allow_hosts: ['*.example'], agent_model: 'large', system_prompt: 'Be brief.' },
      },
      { token: two.agent_token, backend: 'demo', model: { private_addresses: false } },
    ]);
    const spools = started.map(({ spool }) => spool!);
    expect(new Set(spools).size).toBe(2);
    for (const spool of spools) expect(spool).toMatch(/^\/spool\/[0-9a-f]{16}$/);
    expect([agents.size, agents.online]).toEqual([2, 2]);
  });

  test('what changes begins anew, what is gone stops, the others are left alone; one that cannot begin keeps nobody', async () => {
    const { agents, told } = fakes();
    await agents.serve([one, two]);
    await agents.serve([{ ...one, model: 'large' }, two]);
    await agents.serve([two, { ...one, url: 'https://broken' }]);
    await agents.serve([{ ...one, url: 'https://mended' }]);
    expect(told).toEqual(['start a -', 'start b -', 'stop a', 'start a large', 'stop a', 'stop b', 'start a -']);
    await agents.stop();
    expect(told.at(-1)).toBe('stop a');
  });
});

test('who was shut out is begun anew, less often each time; who was replaced is the other process’s until what it is told changes', async () => {
  const ends = new Map<string, (end: { reason: 'revoked' | 'replaced'; code: number; message: string }) => void>();
  const told: string[] = [];
  const clock = manualClock();
  const agents = createTenantAgents({
    gateway: 'ws://gateway/agent',
    model: {},
    clock,
    log: silentLog,
    start({ token }): RunningAgent {
      told.push(token.slice(11, 12));
      return {
        online: true,
        stop: async () => ({ reason: 'stopped', code: 1000, message: '' }),
        stopped: new Promise((resolve) => ends.set(token, resolve)),
      };
    },
  });
  await agents.serve([one, two]);
  ends.get(one.agent_token)!({ reason: 'revoked', code: 4403, message: '' });
  ends.get(two.agent_token)!({ reason: 'replaced', code: 4409, message: '' });
  await Promise.resolve();
  // However often it is asked: each try is a failed hello.
  for (let n = 0; n < 100; n++) await agents.serve([one, two]);
  expect(told).toEqual(['a', 'b']);
  await clock.advance(30_000);
  await agents.serve([one, two]);
  expect(told).toEqual(['a', 'b', 'a']);
  ends.get(one.agent_token)!({ reason: 'revoked', code: 4403, message: '' });
  await Promise.resolve();
  await clock.advance(59_000);
  await agents.serve([one, { ...two, name: 'other' }]);
  expect(told).toEqual(['a', 'b', 'a', 'b']);
  await clock.advance(1_000);
  await agents.serve([one, { ...two, name: 'other' }]);
  expect(told).toEqual(['a', 'b', 'a', 'b', 'a']);
  // Who is taken from the list and comes back may have been let in again.
  ends.get(one.agent_token)!({ reason: 'revoked', code: 4403, message: '' });
  await Promise.resolve();
  await agents.serve([]);
  await agents.serve([one]);
  expect(told.slice(5)).toEqual(['a']);
});

test('an address that a tenant names is held to what the operator allows: nothing private is asked, and the person is told', async () => {
  let asked = 0;
  const inside = createServer((_, response) => {
    asked++;
    response.end('{}');
  });
  await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
  const { port } = inside.address() as { port: number };
  const gateway = scriptedGateway({ clock: systemClock, carry: (deliver) => void setImmediate(deliver) });
  const agents = createTenantAgents({
    gateway: 'ws://memory/agent',
    model: { private_addresses: false, model_retries: 0 },
    clock: systemClock,
    log: silentLog,
    start: (options) => startAgent({ ...options, connect: gateway.net.connect }),
  });
  try {
    for (const [i, url] of [
      `http://127.0.0.1:${port}/v1`,
      `http://localhost:${port}/v1`,
      `http://[::ffff:127.0.0.1]:${port}/v1`,
    ].entries()) {
      await agents.serve([{ ...one, url }]);
      const turn_id = gateway.startTurn(`question ${i}`);
      while (gateway.turns.get(turn_id)?.outcome === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
      expect([url, gateway.turns.get(turn_id)]).toMatchObject([
        url,
        { outcome: 'failed', error: expect.stringMatching(/private|address/) },
      ]);
    }
    expect(asked).toBe(0);
  } finally {
    await agents.stop();
    await new Promise((resolve) => inside.close(resolve));
  }
}, 30_000);

test('LNK5: of two runners with one volume one has the agent; the other takes it, with its spool, when the first has gone', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'iris-volume-'));
  const clock = manualClock();
  const gateway = scriptedGateway({ clock, carry: (deliver) => void setImmediate(deliver) });
  const runner = () => {
    const warned: string[] = [];
    const agents = createTenantAgents({
      gateway: 'ws://gateway/agent',
      spool_dir: dir,
      model: {},
      clock,
      log: { ...silentLog, warn: (event) => void warned.push(event), error: (event) => void warned.push(event) },
      start: (options) => startAgent({ ...options, connect: gateway.net.connect }),
    });
    return { agents, warned };
  };
  const [first, second] = [runner(), runner()];
  const online = async ({ agents }: typeof first) => {
    for (let turns = 0; agents.online === 0 && turns < 10_000; turns++) {
      await clock.advance(1);
      await new Promise(setImmediate);
    }
    expect(agents.online).toBe(1);
  };
  try {
    await first.agents.serve([two]);
    await online(first);
    await second.agents.serve([two]);
    await clock.advance(20_000);
    expect([first.agents.online, second.agents.size, gateway.hellos.length]).toEqual([1, 0, 1]);
    expect(second.warned).toEqual(['agent.spool_in_use']);
    await first.agents.stop();
    await clock.advance(5_000);
    await online(second);
    expect(second.warned).toHaveLength(1);
    expect(new Set(gateway.hellos.map(({ install_id }) => install_id)).size).toBe(1);
    expect(new Set(gateway.hellos.map(({ boot_id }) => boot_id)).size).toBe(2);
    // In another container, of which only its signs of life are to be seen.
    await second.agents.stop();
    const [name] = readdirSync(dir);
    const locks = readdirSync(join(dir, name!)).flatMap((one) => Number(/^lock[.](\d+)$/.exec(one)?.[1] ?? 0));
    writeFileSync(join(dir, name!, `lock.${Math.max(...locks)}`), '1 1 another-container/1\n');
    const third = runner();
    await third.agents.serve([two]);
    expect([third.agents.size, third.warned]).toEqual([0, ['agent.spool_in_use']]);
    await third.agents.stop();
  } finally {
    await Promise.all([first.agents.stop(), second.agents.stop()]);
    rmSync(dir, { recursive: true });
  }
});
