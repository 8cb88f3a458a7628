import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Clock, systemClock } from '@iris/runtime';
import { findProgram } from './commands.js';
import { endPid, removeMark, signalPid, writeMark } from './pids.js';
import { until } from './time.js';

/** A server that runs as a process of its own. */
export interface Server {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  /** Where clients connect, with the credentials. */
  readonly url: string;
  /** Whether it has ended, by itself or by us. */
  readonly ended: Promise<void>;
  /** For tests of faults: nothing is tidied up. */
  kill(signal: NodeJS.Signals): void;
  /** In good order; resolves when it is gone. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly port: number;
  readonly url: string;
  /** Folder for `<name>.log` and the mark by which a later start finds it. */
  readonly run_dir: string;
  readonly stop_signal: NodeJS.Signals;
  readonly stop_ms: number;
  /** As this user; needs root. */
  readonly uid?: number;
  readonly gid?: number;
  readonly ready_ms: number;
  ready(): Promise<boolean>;
  readonly clock?: Clock;
}

/**
 * Start it and wait until it answers. It gets a session of its own, so that a Ctrl-C in the terminal reaches the
 * one who started it and not the server: the order of the end is decided there.
 * @throws with the last lines of its log when it ends or does not get ready
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { name, run_dir, clock = systemClock } = options;
  mkdirSync(run_dir, { recursive: true });
  const logFile = join(run_dir, `${name}.log`);
  mkdirSync(dirname(logFile), { recursive: true });
  const log = openSync(logFile, 'a');
  const command = endingWithUs([options.program, ...options.args], options.stop_signal);
  const child = spawn(command[0]!, command.slice(1), {
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  });
  closeSync(log);
  let gone = false;
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  }).then(() => {
    gone = true;
    removeMark(run_dir, name);
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${name}: ${options.program} cannot be started`);
  writeMark(run_dir, name, pid, options.stop_signal);
  child.unref();

  const ready = await until(clock, options.ready_ms, async () => gone || (await options.ready().catch(() => false)));
  if (gone || !ready) {
    if (!gone) await endPid(pid, options.stop_signal, 1_000, clock);
    throw new Error(`${name} ${gone ? 'ended' : 'did not get ready'}:\n${lastLines(logFile)}`);
  }
  return {
    name,
    pid,
    port: options.port,
    url: options.url,
    ended,
    kill: (signal) => signalPid(pid, signal),
    async stop() {
      if (gone) return;
      await endPid(pid, options.stop_signal, options.stop_ms, clock);
      removeMark(run_dir, name);
    },
  };
}

/**
 * On Linux the kernel can end a child whose parent was killed. Elsewhere the next start does it. A change of user forgets
 * that wish, so it is said to the same program that makes the change.
 */
function endingWithUs(command: readonly string[], signal: NodeJS.Signals): readonly string[] {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv') : undefined;
  if (setpriv === undefined) return command;
  const wish = [setpriv, '--pdeathsig', signal.slice(3)];
  return command[0] === setpriv ? [...wish, ...command.slice(1)] : [...wish, '--', ...command];
}

function lastLines(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-8).join('\n');
  } catch {
    return '';
  }
}
