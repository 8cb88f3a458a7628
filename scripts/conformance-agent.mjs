/**
 * npm run conformance:agent -- --run "node my-agent.mjs": stands as a gateway, starts an agent that dials it, and asks it about every rule of the
 * agent link that an agent must hold. Ends with 1 when one does not hold, with 2 when it could not ask.
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { startModelServer } from '../tests/hermes/model-server.mjs';
import { prepare } from './prepare.mjs';

const usage = `npm run conformance:agent -- --run "COMMAND"   starts it with IRIS_GATEWAY_URL and IRIS_AGENT_TOKEN, and may kill it
npm run conformance:agent -- --port PORT         waits for an agent that you start yourself
  [--token TOKEN]        what the agent must bring (default: a token of its own, printed)
  [--ask TEXT]           what it is asked (Hello)
  [--ask-long TEXT]      what it takes a second or more to answer
  [--only LNK21,…] [--wait-ms 15000] [--verbose] [--json]
  --demo                 the demo agent of this repository
  --openai               its runner before a scripted OpenAI-compatible model`;

let values;
try {
  ({ values } = parseArgs({
    options: {
      run: { type: 'string' },
      port: { type: 'string', default: '0' },
      token: { type: 'string', default: 'iris-agent.conformance.0123456789abcdef' },
      ask: { type: 'string', default: 'Hello' },
      'ask-long': { type: 'string', default: 'Count slowly from one to two hundred, in words' },
      only: { type: 'string' },
      'wait-ms': { type: 'string', default: '15000' },
      demo: { type: 'boolean', default: false },
      openai: { type: 'boolean', default: false },
      verbose: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }));
} catch (error) {
  end(`${error.message}\n${usage}`);
}
if (values.help) {
  console.log(usage);
  process.exit(0);
}
if (values.demo) {
  values.run ??= 'node apps/agent/bin/iris-agent.js --demo --pace 20';
  values.ask = '/demo echo Hello';
  values['ask-long'] = '/demo long 100 20';
}
let model;
if (values.openai) {
  model = await startModelServer();
  values.run ??= `node apps/agent/bin/iris-agent.js --openai ${model.url}`;
  values.ask = '[[say Hello]]';
  values['ask-long'] = '[[count 60 50 c]]';
}
if (values.run === undefined && values.port === '0') end(usage);

await prepare({ code: ['packages/testkit', ...(values.demo || values.openai ? ['apps/agent'] : [])], page: false });
const kit = await import(new URL('../packages/testkit/dist/agent-conformance/index.js', import.meta.url).href);
const served = await kit.serveGateway({ port: Number(values.port), token: values.token }).catch((error) => end(error.message));
const env = { ...process.env, IRIS_GATEWAY_URL: served.url, IRIS_AGENT_TOKEN: values.token };
let agent;
const begin = () => {
  const out = values.verbose ? 'inherit' : 'ignore';
  // A group of its own, so that a shell before it does not outlive it.
  agent = spawn(values.run, { shell: true, detached: true, stdio: ['ignore', out, out], env });
};
const kill = async () => {
  const gone = new Promise((resolve) => (agent.exitCode !== null || agent.signalCode !== null ? resolve() : agent.once('exit', resolve)));
  try {
    process.kill(-agent.pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
  await gone;
};
if (values.run === undefined) console.error(`waiting at ${served.url} for an agent with the token ${values.token}`);
else begin();
process.once('SIGINT', () => void (agent ? kill() : Promise.resolve()).then(() => process.exit(130)));

const subject = {
  gateway: served.gateway,
  ask: values.ask,
  ask_long: values['ask-long'],
  wait_ms: Number(values['wait-ms']),
  ...(values.run === undefined
    ? {}
    : {
        restart: async () => {
          await kill();
          begin();
        },
      }),
};
const results = await kit.runAgentConformance(subject, {
  ...(values.only === undefined ? {} : { only: values.only.split(',') }),
  onResult: ({ rules, title, result, evidence }) => {
    if (!values.json) console.log(`${result.padEnd(8)} ${rules.join(' ').padEnd(30)} ${title}\n${' '.repeat(40)}${evidence}`);
  },
});
if (agent) await kill();
await served.close();
await model?.close();
const failed = results.filter(({ result }) => result === 'fails').length;
if (values.json) console.log(JSON.stringify(results));
else
  console.log(
    `\n${results.filter(({ result }) => result === 'holds').length} hold, ${failed} fail, ${results.length - failed - results.filter(({ result }) => result === 'holds').length} skipped`,
  );
process.exit(failed === 0 ? 0 : 1);

function end(text) {
  console.error(text);
  process.exit(2);
}
