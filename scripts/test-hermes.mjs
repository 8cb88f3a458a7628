/**
 * npm run test:hermes [-- --only runner,plugin] [--rows text,stop] [--version 0.19.0] [--keep]: a real Hermes, from the Python registry, in a
 * virtual environment in node_modules/.cache, with a scripted model behind it and a real gateway in front, in each way in which it can
 * attach. Prints what each way carried, row by row of the agent link. Ends with 1 when a way did not carry what it should.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findPython, installHermes, startHermes } from '../tests/hermes/hermes.mjs';
import { startModelServer } from '../tests/hermes/model-server.mjs';
import { rows } from '../tests/hermes/rows.mjs';
import { ways } from '../tests/hermes/ways.mjs';
import { prepare, root } from './prepare.mjs';
import { say, step } from './step.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(ways).join(',') },
    rows: { type: 'string', default: Object.keys(rows).join(',') },
    version: { type: 'string', default: '0.19.0' },
    keep: { type: 'boolean', default: false },
  },
});
const wanted = values.only.split(',');
const asked = values.rows.split(',');
const unknown = [...wanted.filter((name) => !(name in ways)), ...asked.filter((name) => !(name in rows))];
if (unknown.length > 0)
  end(`there is no ${unknown.join(', ')}: ways are ${Object.keys(ways).join(', ')}; rows are ${Object.keys(rows).join(', ')}`);

const python = findPython();
if (python === undefined) end('test:hermes needs Python 3.11, 3.12 or 3.13 with venv: install it, or put its path in IRIS_PYTHON');

await prepare({ code: 'all', page: false });
const folder = join(root, 'node_modules', '.cache', 'iris', `hermes-${values.version}`);
const own = await installHermes({ python, version: values.version, folder, step });
const { balancer, cluster: startCluster, expectChecks, historiesOf, pull, upload } = await import('@iris/testkit');
const { freePort } = await import('@iris/devstack');

await step('testing the plugin by itself', [own, '-m', 'unittest', 'discover', '-s', join(root, 'integrations', 'hermes', 'tests')], {
  env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
});

say('· starting a gateway: two edges, two session instances, Postgres, Redis, NATS …');
const cluster = await startCluster({ workers: 1 });
const front = await balancer(cluster);
const results = new Map();
try {
  for (const name of wanted) results.set(name, await tryWay(name, ways[name]));
} finally {
  await front.close();
  await cluster.close();
}
// Over the relay the agent is in the edge itself; `npm run conformance:agent -- --demo` and `--openai` ask the runner's other kinds.
for (const name of ['runner', 'plugin'])
  if (wanted.includes(name) && values.rows === Object.keys(rows).join(','))
    results.get(name).set('conformance:agent', await conformance(ways[name]));
process.exit(report());

/** Both are agents like any other: asked about each rule of the link, at a gateway that cuts, repeats and refuses. */
async function conformance(way) {
  say(`\n${way.label}, asked by npm run conformance:agent`);
  const { runAgentConformance, serveGateway } = await import('@iris/testkit/agent-conformance');
  const dir = join(root, 'node_modules', '.cache', 'iris', 'hermes-run-conformance');
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const token = 'iris-agent.conformance.0123456789abcdef';
  const [model, served] = [await startModelServer(), await serveGateway({ port: 0, token })];
  const home = join(dir, 'home');
  const stand = { model, home, dir, agent_url: served.url, tenant: { agent_token: token }, api_port: await freePort() };
  const told = way.hermes(stand);
  const hermes = await startHermes({ python: own, home, ...told, log_file: join(dir, 'hermes.log') });
  let attached = await way.attach?.(stand);
  try {
    const found = await runAgentConformance(
      {
        gateway: served.gateway,
        ask: '[[say hello to you]]',
        ask_long: '[[count 60 50 c]]',
        wait_ms: 60_000,
        async restart() {
          if (attached === undefined) {
            await hermes.kill();
            await hermes.start();
          } else {
            await attached.kill();
            attached = await way.attach(stand);
          }
        },
      },
      { onResult: ({ title, result, evidence }) => say(`  ${result === 'holds' ? '✓' : '✗'} ${title}: ${evidence}`) },
    );
    const held = found.filter(({ result }) => result === 'holds').length;
    return { ok: held === found.length, text: `${held} of ${found.length} hold` };
  } finally {
    await attached?.stop();
    await hermes.stop();
    await model.close();
    await served.close();
  }
}

async function tryWay(name, way) {
  const dir = join(root, 'node_modules', '.cache', 'iris', `hermes-run-${name}`);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(join(dir, 'work'), { recursive: true });
  say(`\n${way.label}`);
  const found = new Map();
  const tenant = await cluster.tenant();
  const model = await startModelServer();
  const stand = {
    model,
    tenant,
    dir,
    python: own,
    api_port: await freePort(),
    agent_url: `ws://127.0.0.1:${front.port}/agent`,
    http_url: `http://127.0.0.1:${front.port}`,
  };
  const home = join(dir, 'home');
  const told = await way.hermes({ ...stand, home });
  const hermes = await startHermes({ python: own, home, ...told, log_file: join(dir, 'hermes.log') });
  const attached = await way.attach?.(stand);
  // On the last edge, so that the agents' edge can go without it.
  const alive = () => cluster.edges.flatMap(({ alive }, index) => (alive ? [index] : []));
  const device = await tenant.join('phone', { edge: alive().at(-1), caps: { cursors: true } });
  await device.sync();
  const seen = Object.create(device, { patience: { value: cluster.patience } });
  const scene = {
    device: seen,
    model,
    tenant,
    cluster,
    hermes,
    work: join(dir, 'work'),
    home,
    upload,
    pull,
    cron_to: way.cron_to,
    /** The `hermes` command in the same home; what it prints. */
    cli: (...args) =>
      execFileSync(join(own, '..', 'hermes'), args, {
        cwd: home,
        encoding: 'utf8',
        timeout: 60_000,
        env: { PATH: process.env.PATH, LANG: 'C.UTF-8', HOME: home, HERMES_HOME: home, NO_COLOR: '1', ...told.env },
      }),
    approvals: way.approvals ?? ['once', 'deny'],
    may_end_early: way.may_end_early ?? false,
    get agent_edge() {
      return alive()[0];
    },
    restartEdge: () => cluster.startEdge(),
  };
  try {
    await way.attached?.(scene);
    const last = way.last ?? [];
    for (const row of [...asked.filter((one) => !last.includes(one)), ...asked.filter((one) => last.includes(one))]) {
      const limit = way.limits[row];
      const begun = performance.now();
      let result;
      try {
        result = { ok: true, text: await rows[row](scene) };
      } catch (error) {
        result = { ok: false, text: error.message };
      }
      result.limit = limit;
      found.set(row, result);
      const mark = result.ok ? '✓' : limit ? '–' : '✗';
      const seconds = `${((performance.now() - begun) / 1000).toFixed(1)} s`;
      say(`  ${mark} ${row.padEnd(30)} ${result.ok || !limit ? result.text : limit}  (${seconds})`);
    }
    try {
      const evidence = { devices: [device], agents: [], histories: await historiesOf(device), lossy: false };
      expectChecks(evidence);
      found.set('checks O1–O10', { ok: true, text: 'held' });
      say('  ✓ nothing lost, twice or out of order');
    } catch (error) {
      found.set('checks O1–O10', { ok: false, text: error.message });
      say(`  ✗ checks: ${error.message}`);
    }
  } finally {
    device.close();
    await attached?.stop();
    await hermes.stop();
    await model.close();
    if (!values.keep && [...found.values()].every(({ ok, limit }) => ok || limit)) rmSync(dir, { recursive: true, force: true });
    else say(`  logs: ${dir}`);
  }
  return found;
}

/** Rows against ways; 1 when one failed that no limit names. */
function report() {
  const version = execFileSync(own, ['-c', "import importlib.metadata as m; print(m.version('hermes-agent'))"], {
    encoding: 'utf8',
  }).trim();
  const names = [...results.keys()];
  const all = [...new Set([...results.values()].flatMap((found) => [...found.keys()]))];
  say(`\nHermes ${version}${' '.repeat(Math.max(1, 25 - version.length))}${names.map((name) => name.padEnd(10)).join('')}`);
  for (const row of all) {
    const cells = names.map((name) => {
      const one = results.get(name).get(row);
      return (one === undefined ? '' : one.ok ? 'yes' : one.limit ? 'no' : 'FAILED').padEnd(10);
    });
    say(`${row.padEnd(32)}${cells.join('')}`);
  }
  for (const name of names)
    for (const [row, { ok, limit }] of results.get(name))
      if (limit) say(`${name}, ${row}: ${ok ? `carried, though a limit is named (${limit})` : limit}`);
  const failed = [...results.values()].flatMap((found) => [...found.values()]).filter(({ ok, limit }) => !ok && !limit);
  say(`\n${failed.length === 0 ? 'every way carried what it should' : `${failed.length} failed`}`);
  return failed.length === 0 ? 0 : 1;
}

function end(text) {
  console.error(text);
  process.exit(2);
}
