import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freezeProcess } from './freeze.js';

/** A process of the product, started for a test. */
export interface PartProcess {
  readonly name: string;
  readonly pid: number;
  readonly alive: boolean;
  readonly ended: Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** SIGTERM; resolves with its exit code when it is gone. */
  stop(): Promise<number | null>;
  log(): string;
}

export interface PartOptions {
  readonly name: string;
  /** A built `main.js`. */
  readonly main: string;
  readonly env: Readonly<Record<string, string>>;
  readonly log_file: string;
  readonly node_args?: readonly string[];
  /** Answers 200 when it does its work. */
  readonly ready_url: string;
}

/** @throws with the end of its log when it ends or is not ready within 30 s */
export async function startPart({ name, main, env, log_file, node_args = [], ready_url }: PartOptions): Promise<PartProcess> {
  mkdirSync(dirname(log_file), { recursive: true });
  const out = openSync(log_file, 'a');
  const child = spawn(process.execPath, [...node_args, '--import', parentWatch(main), main], {
    stdio: ['pipe', out, out],
    env: { ...inherited(), ...env },
  });
  closeSync(out);
  child.stdin?.on('error', () => {});
  let alive = true;
  let code: number | null = null;
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', (exit) => {
      code = exit;
      resolve();
    });
  }).then(() => {
    alive = false;
  });
  const log = () => readFileSync(log_file, 'utf8');
  const give_up = Date.now() + 30_000;
  while (!(await answers(ready_url))) {
    if (!alive || Date.now() > give_up) {
      child.kill('SIGKILL');
      throw new Error(`${name} ${alive ? 'is not ready' : 'ended'}:\n${log().trimEnd().split('\n').slice(-15).join('\n')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  return {
    name,
    pid: child.pid!,
    get alive() {
      return alive;
    },
    ended,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    freeze: () => freezeProcess(child.pid!),
    thaw: () => void child.kill('SIGCONT'),
    async stop() {
      child.kill('SIGCONT');
      child.kill('SIGTERM');
      await ended;
      return code;
    },
    log,
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** Ends the process when the test that started it is gone, however it died. */
const parentWatch = (main: string): string => join(dirname(main), '..', '..', '..', 'packages', 'devstack', 'dist', 'parent-watch.js');

/** The test runner's own settings are not the product's. */
function inherited(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined || name.startsWith('IRIS_') || name === 'NODE_OPTIONS' ? [] : [[name, value]],
    ),
  );
}
