import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { commandLine } from './command-line.js';

const run = (line: string, env: Record<string, string> = {}) => commandLine(line.split(' ').filter(Boolean), env);

test('flags go before the environment', () => {
  expect(run('--gateway wss://g/agent --token t --demo')).toMatchObject({
    kind: 'run',
    backend: 'demo',
    config: { gateway_url: 'wss://g/agent', agent_token: 't', pace_ms: 30, log_level: 'info' },
  });
  const env = { IRIS_GATEWAY_URL: 'ws://e/agent', IRIS_AGENT_TOKEN: 'e', IRIS_SPOOL_DIR: '/s', IRIS_AGENT_NAME: 'n' };
  expect(run('--demo --token f --pace 5 --log-level debug', env)).toMatchObject({
    kind: 'run',
    config: {
      gateway_url: 'ws://e/agent',
      agent_token: 'f',
      spool_dir: '/s',
      agent_name: 'n',
      pace_ms: 5,
      log_level: 'debug',
    },
  });
});

test('openai: where it is, its key, and where it may be', () => {
  const line = '--gateway wss://g --token t --openai https://api.example/v1 --model m --context 8000 --no-private';
  expect(run(`${line} --allow-host api.example *.example.org --allow-address 10.0.0.0/8`, { IRIS_AGENT_KEY: 'k' })).toMatchObject({
    kind: 'run',
    backend: 'openai',
    url: 'https://api.example/v1',
    config: {
      agent_key: 'k',
      agent_model: 'm',
      context_tokens: 8_000,
      private_addresses: false,
      allow_hosts: ['api.example', '*.example.org'],
      allow_addresses: ['10.0.0.0/8'],
      history_chars: 48_000,
    },
  });
  expect(run('--gateway wss://g --token t --openai http://localhost:11434/v1')).toMatchObject({ config: { private_addresses: true } });
});

test('the token may come from a file', () => {
  const dir = mkdtempSync(join(tmpdir(), 'iris-agent-'));
  writeFileSync(join(dir, 'token'), 'from-file\n');
  expect(run('--demo', { IRIS_GATEWAY_URL: 'ws://e/agent', IRIS_AGENT_TOKEN_FILE: join(dir, 'token') })).toMatchObject({
    config: { agent_token: 'from-file' },
  });
  rmSync(dir, { recursive: true });
});

test.each([
  ['--gateway wss://g --token t', 'no backend given'],
  ['--gateway wss://g --token t --openai localhost:11434/v1', 'an address that begins with http:// or https://'],
  ['--gateway wss://g --token t --demo --openai http://localhost:1', '--demo and --openai: one of them'],
  ['--gateway wss://g --token t --openai http://localhost:1 --context many', 'context_tokens'],
  ['--demo --token t', 'gateway_url: missing (IRIS_GATEWAY_URL)'],
  ['--demo --gateway wss://g', 'agent_token: missing (IRIS_AGENT_TOKEN)'],
  ['--demo --gateway http://g --token t', 'gateway_url'],
  ['--demo --gateway wss://g --token t --pace fast', 'pace_ms'],
  ['--demo --gateway wss://g --token t --log-level loud', 'log-level'],
  ['--demo --what', "unknown option '--what'"],
])('%s: says why, and exits with 2', (line, why) => {
  expect(run(line)).toEqual({ kind: 'exit', code: 2, text: expect.stringContaining(why) });
});

test('--help names what there is', () => {
  const help = run('--help');
  expect(help).toMatchObject({ kind: 'exit', code: 0 });
  for (const part of ['--gateway', '--token', '--demo', '--openai', '--hermes', '--key', '--no-private', '--spool', 'IRIS_AGENT_TOKEN'])
    expect(help).toMatchObject({ text: expect.stringContaining(part) });
});

test('many tenants: each has its own endpoint in the file, and private addresses are not asked unless that is said', () => {
  expect(run('--gateway wss://g --tenants /etc/tenants.json --allow-host *.example --spool /s')).toMatchObject({
    kind: 'tenants',
    file: '/etc/tenants.json',
    config: { gateway_url: 'wss://g', private_addresses: false, allow_hosts: ['*.example'], spool_dir: '/s' },
  });
  expect(run('--gateway wss://g --tenants f', { IRIS_PRIVATE_ADDRESSES: 'true' })).toMatchObject({ config: { private_addresses: true } });
  expect(run('--gateway wss://g --tenants f --openai http://x')).toMatchObject({
    kind: 'exit',
    code: 2,
    text: expect.stringMatching(/--openai and --tenants/),
  });
  expect(run('--tenants f')).toMatchObject({ kind: 'exit', code: 2, text: expect.stringMatching(/gateway/i) });
});
