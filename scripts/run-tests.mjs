import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { say } from './step.mjs';

/** System tests that kill, freeze, or measure a machine: one at a time, and beside them nothing that uses the servers of the run. */
const alone = 'tests/system/(broker|cluster|conformance|fuzz|kills|slow-device)\\.';
/** A worker keeps the modules of every file it has run, and is slower the more they are: it starts anew. */
const two = ['--maxWorkers=2', '--workerIdleMemoryLimit=300MB'];
/**
 * In the order of `npm test`. What starts processes and servers mostly waits for them: two files at a time, but for those that want to be
 * {@link alone}; and what is mostly calculated runs beside those and behind them, with the time that this may take.
 */
const runs = [
  { layers: ['unit', 'flow'], args: [...two, '--testTimeout=120000'], beside: alone },
  { layers: ['system'], paths: [alone], args: ['--runInBand', '--testTimeout=120000'] },
  { layers: ['contract'], args: [...two, '--testTimeout=30000'] },
  { layers: ['system', 'browser'], paths: [`^(?!.*${alone})`], args: ['--maxWorkers=2', '--testTimeout=120000'] },
];
/** When it is said which tests. */
const chosenRuns = [
  { layers: ['unit', 'contract', 'flow'], args: [...two, '--testTimeout=30000'] },
  { layers: ['system'], args: ['--runInBand', '--testTimeout=120000'] },
  { layers: ['browser'], args: ['--runInBand', '--testTimeout=120000'] },
];
const allLayers = chosenRuns.flatMap((run) => run.layers);
const withServices = ['contract', 'system', 'browser'];

/**
 * `npm test -- [--only LAYER[,LAYER]] [anything for jest]`
 * @param {string[]} args
 * @returns {Promise<number>} exit code
 */
export async function runTests(args) {
  const { layers, rest } = split(args);
  const whole = layers.includes('system') || layers.includes('browser');
  const servers = layers.some((layer) => withServices.includes(layer));
  await prepare({ code: whole ? 'all' : servers ? ['packages/devstack'] : 'none', page: layers.includes('browser') });
  const stop = stopper();
  const results = { passed: 0, failed: 0, skipped: 0 };
  try {
    const env = { ...process.env, ...(servers ? await services(layers, stop) : {}) };
    const wanted = (rest.length > 0 ? chosenRuns : runs)
      .map((run) => ({ ...run, layers: run.layers.filter((layer) => layers.includes(layer)), args: [...run.args, ...rest] }))
      .filter((run) => run.layers.length > 0);
    for (let at = 0; at < wanted.length && !stop.asked; at++) {
      const { beside, ...run } = wanted[at];
      const paired = beside !== undefined && wanted[at + 1]?.paths?.includes(beside);
      const together = paired ? [jest(wanted[++at], env, stop), jest(run, env, stop, true)] : [jest(run, env, stop)];
      for (const { said, ...one } of await Promise.all(together)) {
        add(results, one);
        process.stderr.write(said);
      }
    }
  } finally {
    await stop.all();
  }
  if (results.passed + results.failed + results.skipped === 0 && !stop.asked) {
    say('no test matches');
    results.failed = 1;
  }
  const { passed, failed, skipped } = results;
  say(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return stop.asked ? 130 : failed > 0 ? 1 : 0;
}

function split(args) {
  const rest = [];
  const only = [];
  for (let i = 0; i < args.length; i++) {
    if (args[i] === '--only') only.push(...(args[++i] ?? '').split(','));
    else if (args[i].startsWith('--only=')) only.push(...args[i].slice('--only='.length).split(','));
    else rest.push(args[i]);
  }
  const unknown = only.find((layer) => !allLayers.includes(layer));
  if (unknown !== undefined) throw new Error(`--only ${unknown}: there is ${allLayers.join(', ')}`);
  return { layers: only.length > 0 ? allLayers.filter((layer) => only.includes(layer)) : allLayers, rest };
}

/** What to undo at the end, backwards; and on Ctrl-C. */
function stopper() {
  const undo = [];
  let running;
  const all = () => {
    running ??= (async () => {
      for (const one of undo.reverse()) await one();
    })();
    return running;
  };
  const self = { asked: false, running: new Set(), undo: (one) => void undo.push(one), all };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      self.asked = true;
      for (const child of self.running) child.kill('SIGTERM');
    });
  }
  return self;
}

/** Real servers for the layers that want them. Addresses that are given are used as they are. */
async function services(layers, stop) {
  const devstack = await import(new URL('../packages/devstack/dist/index.js', import.meta.url).href);
  const programs = await obtain(devstack, layers);
  const dir = mkdtempSync(join(tmpdir(), 'iris-test-'));
  stop.undo(() => rmSync(dir, { recursive: true, force: true }));
  const run_dir = join(dir, 'run');
  const env = {};
  const start = async (name, begin) => {
    const variable = `IRIS_TEST_${name}_URL`;
    if (process.env[variable]) return;
    const server = await begin();
    stop.undo(() => server.stop());
    env[variable] = server.url;
  };
  const postgres = await devstack.choosePostgres(join(dir, 'postgres'));
  await Promise.all([
    start('POSTGRES', () =>
      devstack.startPostgres({ programs: postgres, data: join(dir, 'postgres'), run_dir, password: 'test', durable: false }),
    ),
    start('REDIS', () => devstack.startRedis({ program: programs.get('redis-server'), data: join(dir, 'redis'), run_dir })),
    start('NATS', () => devstack.startNats({ program: programs.get('nats-server'), run_dir })),
    programs.get('s3') &&
      start('S3', () =>
        devstack.startS3({
          program: programs.get('s3'),
          data: join(dir, 's3'),
          run_dir,
          access: 'iris',
          secret: 'iris-secret',
          bucket: 'iris',
        }),
      ),
  ]);
  const names = Object.keys(env).map((name) => name.slice('IRIS_TEST_'.length, -'_URL'.length).toLowerCase());
  say(`· throw-away services: ${names.join(', ')} (Postgres: ${postgres.label})`);
  if (programs.get('chromium')) env.IRIS_TEST_BROWSER = programs.get('chromium');
  return env;
}

/** Paths of the programs that the layers need; installs them when that is allowed. @throws one line that says what to do */
async function obtain(devstack, layers) {
  const debian = { 'redis-server': 'redis-server', 'nats-server': 'nats-server', chromium: 'chromium' };
  const wanted = Object.keys(debian).filter((name) => {
    if (name === 'chromium') return layers.includes('browser') && !process.env.IRIS_TEST_BROWSER;
    return !process.env[name === 'redis-server' ? 'IRIS_TEST_REDIS_URL' : 'IRIS_TEST_NATS_URL'];
  });
  const find = (name) => devstack.findProgram(name) ?? (name === 'chromium' ? devstack.findProgram('google-chrome') : undefined);
  const missing = () => wanted.filter((name) => find(name) === undefined);
  const packages = missing().map((name) => debian[name]);
  if (packages.length > 0) {
    const fault = devstack.isRoot() ? await devstack.installPackages(packages, (line) => say(`· ${line} …`)) : 'not root';
    if (missing().length > 0) {
      throw new Error(
        `the tests need ${missing().join(', ')} (${fault ?? 'not found after installing'}): sudo apt-get install -y ${packages.join(' ')}`,
      );
    }
  }
  const s3 = process.env.IRIS_TEST_S3_URL ? undefined : (devstack.findS3() ?? (await devstack.buildS3((line) => say(`· ${line} …`))));
  if (s3 === undefined && !process.env.IRIS_TEST_S3_URL)
    say('· no S3 server: its tests are skipped (needs Go to build one, or IRIS_TEST_S3_URL)');
  return new Map([...wanted.map((name) => [name, find(name)]), ['s3', s3]]);
}

/**
 * One run of jest, its output straight to the terminal. One that is `behind` another lets that have the processors first, and says what it found
 * when both are over. Never rejects: another may be running.
 */
async function jest({ layers, args, paths = [] }, env, stop, behind = false) {
  const title = `── ${layers.join(', ')} ──`;
  say(behind ? `· beside them, and behind them in line for the processors: ${layers.join(', ')}` : `\n${title}`);
  const folder = mkdtempSync(join(tmpdir(), 'iris-jest-'));
  const file = join(folder, 'results.json');
  let said = '';
  const node = [process.execPath, '--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const command = [
    ...node,
    join(root, 'node_modules', 'jest', 'bin', 'jest.js'),
    '--passWithNoTests',
    '--json',
    `--outputFile=${file}`,
    ...args,
  ];
  const code = await new Promise((resolve) => {
    // `--json` says the results on standard output too; the report for people goes to the other stream.
    const child = spawn(command[0], [...command.slice(1), '--selectProjects', ...layers, ...(paths.length > 0 ? ['--', ...paths] : [])], {
      cwd: root,
      env,
      stdio: ['inherit', 'ignore', behind ? 'pipe' : 'inherit'],
    });
    stop.running.add(child);
    if (behind) {
      try {
        setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
      } catch {
        // A courtesy; it may be gone already, too.
      }
      said = `\n${title}\n`;
      child.stderr.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
    }
    // What a test leaves open must not keep everybody waiting: it is said, and counts as a failure.
    let ready_at;
    const look = setInterval(() => {
      if (!existsSync(file)) return;
      ready_at ??= Date.now();
      if (Date.now() - ready_at < 60_000) return;
      say('· the results are there, and something that a test has left open keeps jest running: killed');
      child.kill('SIGKILL');
    }, 5_000);
    const end = (code) => {
      clearInterval(look);
      stop.running.delete(child);
      resolve(code);
    };
    child.once('error', (error) => {
      say(`· jest cannot be started: ${error.message}`);
      end(1);
    });
    child.once('close', (code, signal) => end(signal === null ? code : 1));
  });
  try {
    if (!existsSync(file)) return { passed: 0, failed: stop.asked ? 0 : 1, skipped: 0, said };
    const results = JSON.parse(readFileSync(file, 'utf8'));
    const skipped = results.numPendingTests + results.numTodoTests;
    // A file that cannot even be loaded has no tests that could fail.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    return { passed: results.numPassedTests, failed: Math.max(failed, code !== 0 && failed === 0 ? 1 : 0), skipped, said };
  } catch (error) {
    say(`· the results of jest cannot be read: ${error.message}`);
    return { passed: 0, failed: 1, skipped: 0, said };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function add(sum, one) {
  for (const name of Object.keys(sum)) sum[name] += one[name];
}
