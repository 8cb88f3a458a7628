import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

/** A Node program that is there until it is stopped. */
export function startProgram(main, args, { env = {}, log_file }) {
  const out = openSync(log_file, 'a');
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', out, out], env: { PATH: process.env.PATH, ...env } });
  closeSync(out);
  const gone = new Promise((resolve) => child.once('exit', resolve));
  return {
    log: () => readFileSync(log_file, 'utf8'),
    async kill() {
      child.kill('SIGKILL');
      await gone;
    },
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
      await gone;
      clearTimeout(timer);
    },
  };
}
