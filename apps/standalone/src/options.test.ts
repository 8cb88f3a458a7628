import { expect, test } from '@jest/globals';
import { OptionError, parseOptions, usage } from './options.js';

test('nothing asked for: one process, the demo agent, port 8080, .iris', () => {
  expect(parseOptions([])).toEqual({
    cluster: false,
    edges: 2,
    sessions: 2,
    workers: 1,
    agent: 'demo',
    port: 8080,
    data: '.iris',
    fresh: false,
    set: [],
    web: true,
    tenants: 1,
    restart: true,
    install: false,
  });
});

test('every option there is', () => {
  const line =
    '--cluster --edges 3 --sessions 4 --workers 0 --agent openai --agent-url http://127.0.0.1:11434/v1 --agent-key k --port 9000 --data /tmp/x --fresh --set a=1 --set b=2 --no-web --tenants 5 --no-restart --install';
  expect(parseOptions(line.split(' '))).toEqual({
    cluster: true,
    edges: 3,
    sessions: 4,
    workers: 0,
    agent: 'openai',
    agent_url: 'http://127.0.0.1:11434/v1',
    agent_key: 'k',
    port: 9000,
    data: '/tmp/x',
    fresh: true,
    set: ['a=1', 'b=2'],
    web: false,
    tenants: 5,
    restart: false,
    install: true,
  });
  for (const [option] of line.matchAll(/--[a-z-]+/g)) expect(usage).toContain(option);
});

test.each([
  '--colour',
  'start',
  '--port 0',
  '--port 65001',
  '--port 80a',
  '--port 1e3',
  '--edges 2',
  '--cluster --edges 0',
  '--cluster --sessions -1',
  '--tenants 0',
  '--agent gpt',
  '--agent openai',
  '--agent demo --agent-url http://x',
  '--agent openai --agent-url localhost:11434',
  '--agent openai --agent-url http://u:p@h/v1',
  '--port',
])('%s is refused in one line', (line) => {
  let fault: unknown;
  try {
    parseOptions(line.split(' '));
  } catch (error) {
    fault = error;
  }
  expect(fault).toBeInstanceOf(OptionError);
});

test('help', () => {
  expect(parseOptions(['--port', '1', '--help'])).toBe('help');
});
