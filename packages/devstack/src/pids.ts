import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '@iris/runtime';
import { until } from './time.js';

/** A process, named so that a later process with the same number is not taken for it. */
export interface ProcessMark {
  readonly pid: number;
  /** When it started, as the system says it; null when that cannot be known. */
  readonly started: string | null;
  /** What ends it in good order. */
  readonly signal: NodeJS.Signals;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return state(pid) !== 'Z';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Never throws: whoever is gone already has nothing against it. */
export function signalPid(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {}
}

/** Remember a process of ours in `run_dir`, in case nobody is left to end it. */
export function writeMark(run_dir: string, name: string, pid: number, signal: NodeJS.Signals): void {
  mkdirSync(run_dir, { recursive: true });
  const mark: ProcessMark = { pid, started: startTime(pid), signal };
  writeFileSync(markFile(run_dir, name), `${JSON.stringify(mark)}\n`);
}

export function removeMark(run_dir: string, name: string): void {
  rmSync(markFile(run_dir, name), { force: true });
}

/** The marked process, if it is the one that was marked and still lives. */
export function livingMark(run_dir: string, name: string): ProcessMark | undefined {
  try {
    const mark = JSON.parse(readFileSync(markFile(run_dir, name), 'utf8')) as ProcessMark;
    return mark.started !== null && isAlive(mark.pid) && startTime(mark.pid) === mark.started ? mark : undefined;
  } catch {
    return undefined;
  }
}

/**
 * End what an earlier start left running because it was killed itself.
 * @returns the names of what was ended
 */
export async function endLeftovers(run_dir: string, clock: Clock = systemClock): Promise<string[]> {
  if (!existsSync(run_dir)) return [];
  const names = readdirSync(run_dir).flatMap((file) => (file.endsWith('.pid.json') ? [file.slice(0, -'.pid.json'.length)] : []));
  const ended = await Promise.all(
    names.map(async (name) => {
      const mark = livingMark(run_dir, name);
      if (mark !== undefined) await endPid(mark.pid, mark.signal, 5_000, clock);
      removeMark(run_dir, name);
      return mark === undefined ? [] : [name];
    }),
  );
  return ended.flat();
}

/** Ask with `signal`, wait `patience_ms`, then SIGKILL. Resolves when the process is gone. */
export async function endPid(pid: number, signal: NodeJS.Signals, patience_ms: number, clock: Clock = systemClock): Promise<void> {
  signalPid(pid, signal);
  if (await until(clock, patience_ms, () => !isAlive(pid))) return;
  signalPid(pid, 'SIGKILL');
  await until(clock, 5_000, () => !isAlive(pid));
}

const markFile = (run_dir: string, name: string): string => join(run_dir, `${name}.pid.json`);

/** Fields of /proc/<pid>/stat after the command, which may hold spaces and brackets itself. */
function stat(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}
const state = (pid: number): string | undefined => stat(pid)[0];

/** Ticks since boot; where there is no /proc, what `ps` says. Null when unknown, which is nobody's mark. */
function startTime(pid: number): string | null {
  const ticks = stat(pid)[19];
  if (ticks !== undefined || process.platform === 'linux') return ticks ?? null;
  try {
    return (
      execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim() || null
    );
  } catch {
    return null;
  }
}
