import { openSync, writeSync } from 'node:fs';

/** Log lines go to a file; errors are pointed out to the person who started it. */
export interface LogFile {
  write(line: string): void;
  /** From now on lines go here; those of before come first. */
  open(path: string): void;
}

export function logFile({ complain }: { complain: (line: string) => void }): LogFile {
  let file: { readonly path: string; readonly fd: number } | undefined;
  let early: string[] = [];
  const told = new Set<string>();
  return {
    write(line) {
      if (file === undefined) {
        early.push(line);
        return;
      }
      writeSync(file.fd, line);
      const event = /"level":"error".*"event":"([^"]*)"/.exec(line)?.[1];
      // Each kind once: the file has them all.
      if (event === undefined || told.has(event) || event.startsWith('lifecycle.')) return;
      told.add(event);
      complain(`! ${event}: see ${file.path}`);
    },
    open(path) {
      file = { path, fd: openSync(path, 'a') };
      for (const line of early) writeSync(file.fd, line);
      early = [];
    },
  };
}
