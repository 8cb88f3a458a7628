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
  ['--gateway wss://g --token t --openai http://localhost:11434/v1', '--openai is not available yet; --demo is'],
  ['--gateway wss://g --token t --hermes http://localhost:1', '--hermes is not available yet; --demo is'],
  ['--demo --token t', 'gateway_url: missing (IRIS_GATEWAY_URL)'],
  ['--demo --gateway wss://g', 'agent_token: missing (IRIS_AGENT_TOKEN)'],
  ['--demo --gateway http://g --token t', 'gateway_url'],
  ['--demo --gateway wss://g --token t --pace fast', 'pace_ms'],
  ['--demo --gateway wss://g --token t --log-level loud', 'log-level'],
  ['--demo --what', "unknown option '--what'"],
])('%s: says why, and exits with 2', (line, why) => {
  expect(run(line)).toEqual({ kind: 'exit', code: 2, text: expect.stringContaining(why) });
});

test('--help names what there is and what is not there yet', () => {
  const help = run('--help');
  expect(help).toMatchObject({ kind: 'exit', code: 0 });
  for (const part of ['--gateway', '--token', '--demo', '--openai', '--hermes', 'not available yet', '--spool', 'IRIS_AGENT_TOKEN'])
    expect(help).toMatchObject({ text: expect.stringContaining(part) });
});
