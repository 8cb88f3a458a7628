import { type SpawnOptions, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where servers and package managers are kept that a plain user's PATH often leaves out. */
const alsoIn = ['/usr/sbin', '/sbin', '/usr/local/bin', '/usr/local/sbin', '/opt/homebrew/bin', '/usr/local/go/bin'];

/** Full path of a program in PATH, in the usual folders beside it, or in `more`. */
export function findProgram(name: string, more: readonly string[] = []): string | undefined {
  for (const folder of [...more, ...(process.env.PATH ?? '').split(delimiter), ...alsoIn]) {
    if (folder !== '' && isProgram(join(folder, name))) return join(folder, name);
  }
  return undefined;
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

export interface Outcome {
  /** 0 is success; 127 when it could not be started. */
  readonly code: number;
  /** What it printed, both streams together. */
  readonly output: string;
}

/** Run a program to its end. Never throws: a program that cannot be started is an outcome too. */
export function run(
  program: string,
  args: readonly string[],
  options: SpawnOptions & { onLine?: (line: string) => void } = {},
): Promise<Outcome> {
  const { onLine, ...rest } = options;
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...rest });
    let output = '';
    let line = '';
    const take = (data: Buffer) => {
      const text = data.toString('utf8');
      output = (output + text).slice(-64 * 1024);
      line += text;
      for (let at = line.indexOf('\n'); at >= 0; at = line.indexOf('\n')) {
        onLine?.(line.slice(0, at).trimEnd());
        line = line.slice(at + 1);
      }
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    child.once('error', (error) => resolve({ code: 127, output: `${output}${error.message}` }));
    child.once('close', (code, signal) => resolve({ code: code ?? (signal === null ? 1 : 128), output }));
  });
}

export const isRoot = (): boolean => process.getuid?.() === 0;
