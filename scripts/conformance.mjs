/**
 * npm run conformance -- --url ws://…/ws --token …: asks a gateway about every rule of packages/protocol/SPEC.md, and prints a line for each:
 * rule, result, evidence. Ends with 1 when a rule that is built does not hold, with 2 when it could not ask.
 */
import { parseArgs } from 'node:util';
import { prepare } from './prepare.mjs';

const usage = `npm run conformance -- --url ws://HOST/ws [--url …, one per edge] --token TOKEN
  [--agent-url ws://HOST/agent … --agent-token TOKEN]   with an agent of its own; no other may be attached with that token
  [--admin-url http://HOST --admin-token TOKEN]          with tenants of its own; then --token and --agent-token may be left out
  [--dev DIR]                                            all of these from the dev.json of a running npm start (.iris)
  [--only HEL,ENV4] [--slow] [--wait-ms 5000] [--timings] [--json]`;

let values;
try {
  ({ values } = parseArgs({
    options: {
      url: { type: 'string', multiple: true },
      token: { type: 'string' },
      'agent-url': { type: 'string', multiple: true },
      'agent-token': { type: 'string' },
      'admin-url': { type: 'string' },
      'admin-token': { type: 'string' },
      dev: { type: 'string' },
      only: { type: 'string' },
      slow: { type: 'boolean', default: false },
      'wait-ms': { type: 'string', default: '5000' },
      timings: { type: 'boolean', default: false },
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
const given = await target();
if (given.urls.length === 0) end(`--url is missing\n${usage}`);

await prepare({ code: ['packages/testkit'], page: false });
const kit = await import(new URL('../packages/testkit/dist/conformance/index.js', import.meta.url).href);
try {
  const begun = performance.now();
  const gateway = await kit.urlTarget(given);
  const results = await kit.runConformance(gateway, {
    rules: kit.specRules(),
    ...(values.only === undefined ? {} : { only: values.only.split(',') }),
    ...(values.slow ? { max_seconds: 60 } : {}),
    ...(values.timings ? { onCheck: (rules, ms) => console.error(`${String(Math.round(ms)).padStart(6)} ms ${rules.join(' ')}`) } : {}),
  });
  const wanted = values.only?.split(',');
  const shown = wanted === undefined ? results : results.filter(({ rule }) => wanted.some((start) => rule.startsWith(start)));
  console.log(values.json ? JSON.stringify(shown) : kit.tableOf(shown));
  const took = `${((performance.now() - begun) / 1000).toFixed(1)} s`;
  if (!values.json) console.log(`\n${kit.summaryOf(shown)} (${took})`);
  process.exit(kit.holds(shown) ? 0 : 1);
} catch (error) {
  end(error.message);
}

/** What was given, and what `dev.json` says where it was not. */
async function target() {
  const { readFileSync } = await import('node:fs');
  const { join } = await import('node:path');
  const dev = values.dev === undefined ? undefined : JSON.parse(readFileSync(join(values.dev, 'dev.json'), 'utf8'));
  const some = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const urls = values.url ?? dev?.edges ?? [];
  return {
    urls,
    wait_ms: Number(values['wait-ms']),
    ...some({
      token: values.token,
      agent_urls: values['agent-url'] ?? (dev === undefined ? undefined : urls.map((url) => url.replace(/\/ws$/, '/agent'))),
      agent_token: values['agent-token'],
      admin_url: values['admin-url'] ?? dev?.control_url,
      admin_token: values['admin-token'] ?? dev?.admin_token,
    }),
  };
}

function end(text) {
  console.error(text);
  process.exit(2);
}
