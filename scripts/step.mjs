// One line per step, and what went wrong only when something did.
import { spawn } from 'node:child_process';

export const say = (line) => console.log(line);

/**
 * A npm that is killed says nothing to what it runs. So when it is our parent, we look whether it still is.
 * (Asked to stop, it passes that on: package.json says `exec`, or a shell would stand between and die alone.)
 */
export function endWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const looking = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  looking.unref();
}

/**
 * Run a program to its end. Shows `title`, how long it takes, and its output only when it fails.
 * Ctrl-C and SIGTERM end it, and then us.
 * @param {string} title
 * @param {readonly string[]} command
 * @param {import('node:child_process').SpawnOptions} options
 */
export function step(title, command, options = {}) {
  const begun = performance.now();
  const seconds = () => `${((performance.now() - begun) / 1000).toFixed(0)} s`;
  say(`· ${title} …`);
  const ticking = setInterval(() => say(`  … ${title}, ${seconds()}`), 15_000);
  return new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    let output = '';
    const take = (data) => {
      output = (output + data).slice(-20_000);
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    const end = (signal) => {
      child.kill(signal);
      child.once('close', () => process.exit(signal === 'SIGINT' ? 130 : 143));
    };
    const signals = ['SIGINT', 'SIGTERM'].map((signal) => [signal, () => end(signal)]);
    for (const [signal, listener] of signals) process.on(signal, listener);
    const done = (fault) => {
      clearInterval(ticking);
      for (const [signal, listener] of signals) process.off(signal, listener);
      if (fault === undefined) resolve(output);
      else reject(new Error(`${title} failed: ${fault}\n${output.trim()}`));
    };
    child.once('error', (error) => done(error.code === 'ENOENT' ? `${command[0]} is not there` : error.message));
    child.once('close', (code, signal) => done(code === 0 ? undefined : `${command.join(' ')} ended with ${signal ?? code}`));
  });
}
