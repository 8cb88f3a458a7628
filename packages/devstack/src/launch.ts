import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '@iris/runtime';
import { endPid, removeMark, writeMark } from './pids.js';
import { until } from './time.js';

/** A process that was started here and does its work. */
export interface Launched {
  readonly pid: number;
  /** Resolves when it is gone, for whatever reason. */
  readonly ended: Promise<void>;
  /** In good order; resolves when it is gone. */
  stop(): Promise<void>;
}

export interface LaunchOptions {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** As this user; needs root. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Keep its standard input open for as long as we live. */
  readonly hold_stdin?: boolean;
  /** Folder for `<name>.log` and the mark by which a later start finds what was left running. */
  readonly run_dir: string;
  readonly stop_signal: NodeJS.Signals;
  readonly stop_ms: number;
  readonly ready_ms: number;
  /** Asked again and again; throwing is a no. */
  ready(): Promise<boolean>;
  readonly clock?: Clock | undefined;
}

/**
 * Start a process and wait until it is ready. It gets a session of its own, so that a Ctrl-C in the terminal reaches the
 * one who started it and not the process: the order of the end is decided there.
 * @throws with the last lines of its log when it ends or does not get ready
 */
export async function launch(options: LaunchOptions): Promise<Launched> {
  const { name, command, run_dir, stop_signal, clock = systemClock } = options;
  mkdirSync(run_dir, { recursive: true });
  const logFile = join(run_dir, `${name}.log`);
  const log = openSync(logFile, 'a');
  const child = spawn(command[0]!, command.slice(1), {
    detached: true,
    stdio: [options.hold_stdin === true ? 'pipe' : 'ignore', log, log],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...options.user,
  });
  closeSync(log);
  child.stdin?.on('error', () => {});
  let gone = false;
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  }).then(() => {
    gone = true;
    removeMark(run_dir, name);
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name}: ${command[0]} cannot be started`);
  writeMark(run_dir, name, pid, stop_signal);

  const ready = await until(clock, options.ready_ms, async () => gone || (await options.ready().catch(() => false)));
  if (gone || !ready) {
    if (!gone) await endPid(pid, stop_signal, 1_000, clock);
    throw new Error(`${name} ${gone ? 'ended' : 'did not get ready'}:\n${lastLines(logFile)}`);
  }
  return {
    pid,
    ended,
    async stop() {
      if (gone) return;
      await endPid(pid, stop_signal, options.stop_ms, clock);
      await ended;
    },
  };
}

function lastLines(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-8).join('\n');
  } catch {
    return '';
  }
}
