import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '@iris/runtime';
import { endLeftovers, livingMark, removeMark, writeMark } from './pids.js';

/** One start's folder: data that stay, and what runs now. */
export interface DataFolder {
  readonly dir: string;
  /** Logs, and marks of processes. */
  readonly run_dir: string;
  path(name: string): string;
  /** A secret that is made once and kept. */
  secret(name: string): string;
  /** A small JSON file beside the data; undefined when it is not there or not readable. */
  read<T>(name: string): T | undefined;
  /** Replaces the file in one step, readable by its owner only. */
  write(name: string, value: unknown): void;
  remove(name: string): void;
  /** Let another start have it. */
  release(): void;
}

const marker = 'iris-data.json';

/**
 * Take the folder for this start, making it when needed, and end what an earlier one left running.
 * @param options.fresh forget the data first
 * @throws one line when another start has it, or when it is somebody else's folder
 */
export async function takeDataFolder(options: {
  dir: string;
  fresh: boolean;
  say: (line: string) => void;
  clock?: Clock;
}): Promise<DataFolder> {
  const { say, clock = systemClock } = options;
  const dir = resolve(options.dir);
  const run_dir = join(dir, 'run');
  if (existsSync(dir) && !existsSync(join(dir, marker)) && readdirSync(dir).length > 0) {
    throw new Error(`${dir} is not empty and not ours: choose another folder with --data`);
  }
  const other = livingMark(run_dir, 'start');
  if (other !== undefined && other.pid !== process.pid) {
    throw new Error(`${dir} is in use by another start (pid ${other.pid}): stop that one, or choose another folder with --data`);
  }
  const ended = await endLeftovers(run_dir, clock);
  if (ended.length > 0) say(`ended what an earlier start had left running: ${ended.join(', ')}`);
  if (options.fresh) rmSync(dir, { recursive: true, force: true });
  mkdirSync(run_dir, { recursive: true });
  writeFileSync(join(dir, marker), '{"made_by":"iris-gateway"}\n');
  writeMark(run_dir, 'start', process.pid, 'SIGTERM');
  for (const file of readdirSync(run_dir)) if (file.endsWith('.log')) rmSync(join(run_dir, file));

  const path = (name: string): string => join(dir, name);
  const read = <T>(name: string): T | undefined => {
    try {
      return JSON.parse(readFileSync(path(name), 'utf8')) as T;
    } catch {
      return undefined;
    }
  };
  const write = (name: string, value: unknown): void => {
    writeFileSync(path(`${name}.new`), `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
    renameSync(path(`${name}.new`), path(name));
  };
  return {
    dir,
    run_dir,
    path,
    secret(name) {
      const secrets = new Map(Object.entries(read<Record<string, string>>('secrets.json') ?? {}));
      const known = secrets.get(name);
      if (known !== undefined) return known;
      const made = randomBytes(24).toString('base64url');
      write('secrets.json', Object.fromEntries(secrets.set(name, made)));
      return made;
    },
    read,
    write,
    remove: (name) => rmSync(path(name), { force: true }),
    release: () => removeMark(run_dir, 'start'),
  };
}
