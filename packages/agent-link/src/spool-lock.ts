import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Folders that this process has open. */
const open = new Set<string>();

/**
 * Two processes with one spool would give two frames the same `seq`. A dead owner's lock is taken over, also when its number is another
 * process's by now, as after the restart of a container, or when nobody has buried it yet.
 * @returns gives it back. @throws Error that names the owner
 */
export function lockSpool(dir: string): () => void {
  if (open.has(dir)) throw new Error(`the spool ${dir} is already open in this process`);
  const path = join(dir, 'lock');
  const mine = `${process.pid} ${bornAt(process.pid)?.mark ?? ''}\n`;
  for (;;) {
    try {
      const fd = openSync(path, 'wx', 0o600);
      writeSync(fd, mine);
      closeSync(fd);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const owner = ownerOf(path);
    if (owner !== undefined && owner.pid !== process.pid && alive(owner))
      throw new Error(`the spool ${dir} is in use by process ${owner.pid}`);
    try {
      unlinkSync(path);
    } catch {}
  }
  open.add(dir);
  return () => {
    open.delete(dir);
    try {
      unlinkSync(path);
    } catch {}
  };
}

interface Owner {
  readonly pid: number;
  /** What tells it from others that had or get its number; empty where the system has nothing of the kind. */
  readonly mark: string;
}

function ownerOf(path: string): Owner | undefined {
  try {
    const [pid = '', mark = ''] = readFileSync(path, 'utf8').trim().split(' ');
    return Number.isSafeInteger(Number(pid)) && Number(pid) > 0 ? { pid: Number(pid), mark } : undefined;
  } catch {
    return undefined;
  }
}

function alive({ pid, mark }: Owner): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const found = bornAt(pid);
  return found === undefined || (!found.over && (mark === '' || mark === found.mark));
}

/** When a process began, in the kernel's ticks, and whether it has ended and waits to be buried. Undefined where there is no `/proc`. */
function bornAt(pid: number): { readonly mark: string; readonly over: boolean } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Behind the name, which may hold anything: state is the third field, the start the twenty-second.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { mark: fields[19] ?? '', over: /^[ZX]/.test(fields[0] ?? '') };
  } catch {
    return undefined;
  }
}
