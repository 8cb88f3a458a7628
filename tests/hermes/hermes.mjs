/** A real Hermes: installed into a virtual environment of this clone, and started with a home of its own. */
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @returns the first Python that can make a virtual environment for Hermes, or undefined */
export function findPython() {
  const check = 'import sys, venv, ensurepip; assert (3, 11) <= sys.version_info[:2] < (3, 14)';
  return [process.env.IRIS_PYTHON, 'python3', 'python3.13', 'python3.12', 'python3.11', 'python'].find(
    (name) => name !== undefined && runs(name, ['-c', check]),
  );
}

const runs = (program, args) => {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** @returns the environment's python, with Hermes in it. @param step says what takes time */
export async function installHermes({ python, version, folder, step }) {
  const own = join(folder, 'bin', 'python');
  const wanted = [`hermes-agent==${version}`, 'aiohttp==3.14.1'];
  const check = `import importlib.metadata as m; assert m.version('hermes-agent') == '${version}'; import aiohttp`;
  if (!existsSync(own)) await step('making a virtual environment', [python, '-m', 'venv', folder]);
  if (!runs(own, ['-c', check]))
    await step(`installing hermes-agent ${version} from PyPI`, [own, '-m', 'pip', 'install', '--quiet', ...wanted]);
  return own;
}

/**
 * Starts `hermes gateway run`. `restart()` begins a new process in the same home; `kill()` is SIGKILL.
 * @param config the home's config.yaml. @param ready asked until it is true
 */
export async function startHermes({ python, home, config, env, ready, log_file }) {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'config.yaml'), config);
  let child;
  let gone;
  const begin = async () => {
    const out = openSync(log_file, 'a');
    // Its own group: the tools it runs go with it.
    child = spawn(join(python, '..', 'hermes'), ['gateway', 'run'], {
      cwd: home,
      detached: true,
      stdio: ['ignore', out, out],
      env: { PATH: process.env.PATH, LANG: 'C.UTF-8', HOME: home, HERMES_HOME: home, NO_COLOR: '1', ...env },
    });
    closeSync(out);
    const mine = child;
    gone = new Promise((resolve) => mine.once('exit', resolve));
    const give_up = Date.now() + 90_000;
    while (!(await ready())) {
      if (mine.exitCode !== null || mine.signalCode !== null || Date.now() > give_up)
        throw new Error(`Hermes is not ready:\n${tail(log_file)}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  const end = async (signal) => {
    try {
      process.kill(-child.pid, signal);
    } catch {
      // Gone already.
    }
    const timer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), 20_000);
    await gone;
    clearTimeout(timer);
  };
  try {
    await begin();
  } catch (error) {
    await end('SIGKILL');
    throw error;
  }
  return {
    kill: () => end('SIGKILL'),
    start: begin,
    stop: () => end('SIGTERM'),
    log: () => readFileSync(log_file, 'utf8'),
  };
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // Gone already.
  }
}

const tail = (file) => readFileSync(file, 'utf8').trimEnd().split('\n').slice(-20).join('\n');

/** What every way has in common: the scripted model, approvals asked of a person, no chatter of the gateway's own. */
export const baseConfig = ({ model_url, more = '' }) => `model:
  provider: custom
  base_url: ${model_url}
  default: scripted-small
  api_key: none
  context_length: 200000
  supports_vision: true
approvals:
  mode: manual
  timeout: 60
terminal:
  backend: local
memory:
  memory_enabled: false
  user_profile_enabled: false
compression:
  enabled: false
${more}`;
