/**
 * npm run test:autobahn [-- 1.* 6.4.*]: the Autobahn test suite against the edge's WebSocket server, which echoes here. Every case must be OK,
 * but for the limits below. The suite is written for Python 2.7; it is installed from the Python registry into node_modules/.cache.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { say, step } from './step.mjs';

const suite = 'autobahntestsuite==25.10.1';

/** Where we are not as strict as the suite would like, or refuse what it wants. Everything else must be OK. */
const limits = [
  {
    cases: ['9.1.6', '9.2.6'],
    outcome: 'FAILED',
    why: 'a message of 16 MiB: what is above 8 MiB is not read at all (a frame of the protocol has 256 KiB, LIM1)',
  },
  {
    cases: ['3.2', '3.3', '4.1.3', '4.1.4', '4.2.3', '4.2.4', '5.15'],
    outcome: 'NON-STRICT',
    why: 'a frame that breaks RFC 6455 ends the connection at once, with what was being answered to frames of the same read',
  },
  {
    cases: ['6.4.1', '6.4.2', '6.4.3', '6.4.4'],
    outcome: 'NON-STRICT',
    why: 'UTF-8 is checked when a message is whole, not while its fragments come',
  },
  { cases: ['7.1.6', '7.13.1', '7.13.2'], outcome: 'INFORMATIONAL', why: 'no judgement: the suite only writes down what happens' },
  {
    cases: ['12.1.1', '13.1.1'],
    outcome: 'UNIMPLEMENTED',
    why: 'no permessage-deflate: a frame is encoded once for all sockets, and compressed ones would cost each its own copy and window',
  },
];
/** Of the compression cases one of each kind says it all: without the extension none of them does anything. */
const everything = [...Array.from({ length: 10 }, (_, i) => `${i + 1}.*`), '12.1.1', '13.1.1'];

const python = findPython();
if (python === undefined) {
  console.error(
    'The Autobahn suite needs Python 2.7, and none is here: put python2.7 (or a PyPy for 2.7) on the PATH, or its path in IRIS_PYTHON2.',
  );
  process.exit(2);
}
await prepare({ code: ['apps/edge'], page: false });
const home = join(root, 'node_modules', '.cache', 'iris', 'autobahn');
const env = { ...process.env, PYTHONUSERBASE: home, PYTHONDONTWRITEBYTECODE: '1', PYTHONWARNINGS: 'ignore' };
if (!canRun()) {
  mkdirSync(home, { recursive: true });
  await step(`installing ${suite}`, [python, '-m', 'pip', 'install', '--user', '--no-warn-script-location', suite], { env });
}

const { startUwsServer } = await import(new URL('../apps/edge/dist/index.js', import.meta.url).href);
const server = await startUwsServer({ host: '127.0.0.1', port: 0 }, (socket) => ({
  message: (data, binary) => socket.send(data, binary),
  pong() {},
  drained() {},
  closed() {},
}));
const folder = mkdtempSync(join(tmpdir(), 'iris-autobahn-'));
try {
  const cases = process.argv.length > 2 ? process.argv.slice(2) : everything;
  process.exitCode = judge(await play(cases));
} finally {
  server.close();
  rmSync(folder, { recursive: true, force: true });
}

/** A Python 2.7 wherever one is usually kept. */
function findPython() {
  const pyenv = join(homedir(), '.pyenv', 'versions');
  const kept = existsSync(pyenv) ? readdirSync(pyenv).filter((name) => /^(pypy)?2\.7/.test(name)) : [];
  const names = [process.env.IRIS_PYTHON2, 'python2.7', 'python2', 'pypy', ...kept.map((name) => join(pyenv, name, 'bin', 'python'))];
  return names.find((name) => name !== undefined && runs(name, 'import sys, pip; assert sys.version_info[:2] == (2, 7)'));
}

function runs(program, code, environment = process.env) {
  try {
    execFileSync(program, ['-c', code], { stdio: 'ignore', env: environment });
    return true;
  } catch {
    return false;
  }
}

function canRun() {
  return runs(python, `import autobahntestsuite.wstest, pkg_resources; pkg_resources.require('${suite}')`, env);
}

/** @returns {Promise<Record<string, {behavior: string, behaviorClose: string}>>} by case */
async function play(cases) {
  const spec = join(folder, 'spec.json');
  const url = `ws://127.0.0.1:${server.port}/ws`;
  writeFileSync(spec, JSON.stringify({ outdir: join(folder, 'reports'), servers: [{ agent: 'edge', url }], cases, 'exclude-cases': [] }));
  say('· playing the suite, a minute or more …');
  const child = spawn(python, ['-m', 'autobahntestsuite.wstest', '-m', 'fuzzingclient', '-s', spec], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      output = (output + data).slice(-4_000);
    });
  const code = await new Promise((resolve) => child.once('close', resolve));
  const index = join(folder, 'reports', 'index.json');
  if (code !== 0 || !existsSync(index)) throw new Error(`the suite ended with ${code}:\n${output}`);
  return JSON.parse(readFileSync(index, 'utf8')).edge;
}

/** Says what came out; 1 when something failed that no limit names. */
function judge(results) {
  const all = Object.entries(results);
  if (all.length === 0) throw new Error('no case was played');
  const limitOf = (name, outcome) => limits.find((limit) => limit.cases.includes(name) && limit.outcome === outcome);
  const outcomeOf = ({ behavior, behaviorClose }) => (behavior === 'OK' ? behaviorClose : behavior);
  const failed = all.filter(([name, result]) => outcomeOf(result) !== 'OK' && limitOf(name, outcomeOf(result)) === undefined);
  for (const { cases, outcome, why } of limits) {
    const here = cases.filter((name) => results[name] !== undefined && outcomeOf(results[name]) === outcome);
    if (here.length > 0) say(`  ${outcome.padEnd(13)} ${here.join(' ')}: ${why}`);
    const better = cases.filter((name) => results[name] !== undefined && outcomeOf(results[name]) === 'OK');
    if (better.length > 0) say(`  OK            ${better.join(' ')}: a limit is named for it (${outcome}), but was not met`);
  }
  for (const [name, result] of failed) say(`  FAIL          ${name}: ${result.behavior}, closing ${result.behaviorClose}`);
  say(`\n${all.length - failed.length} passed, ${failed.length} failed`);
  return failed.length > 0 ? 1 : 0;
}
