import {
  closeSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock } from './clock.js';
import { type Random, randomId } from './ids.js';

/** Another process has the folder. It may not have it for long: ask again. */
export class SpoolInUse extends Error {}

export interface SpoolLock {
  /** @throws SpoolInUse when another process has taken the folder, since this one stood still for so long that it counted as dead */
  check(): void;
  release(): void;
}

/** Folders that this process has open. */
const open = new Set<string>();

/** How often an owner gives a sign of life, to those that cannot look at its process. */
const beat_ms = 4_000;
/** Without a sign for so long it counts as dead. */
const lease_ms = 15_000;

const free = 'free\n';

/**
 * Two processes with one spool would give two frames the same `seq`. A dead owner's lock is taken over, also when its number is another
 * process's by now, as after the restart of a container, or when nobody has buried it yet. One whose process cannot be seen from here, in
 * another container or on another machine that has the same volume, is dead when it gives no sign of life.
 *
 * Each owner has a file `lock.<n>`, `n` one more than its predecessor's, which is made whole or not at all: of those who find the same owner
 * dead, one gets the next number. Numbers never fall: who is done leaves its file as free, and the two highest stay.
 * @throws SpoolInUse that names the owner
 */
export function lockSpool(dir: string, { clock, random }: { clock: Clock; random: Random }): SpoolLock {
  if (open.has(dir)) throw new SpoolInUse(`the spool ${dir} is already open in this process`);
  const mine = `${process.pid} ${bornAt(process.pid)?.mark ?? ''} ${here()}\n`;
  const fresh = join(dir, `lock-${process.pid}-${randomId(random)}.new`);
  const number = take(dir, fresh, mine);
  const path = pathOf(dir, number);
  // Of this file, whatever takes its name.
  const fd = openSync(path, 'r+');
  open.add(dir);
  let looked = clock.now();
  let taken = false;
  let released = false;
  const look = () => {
    looked = clock.now();
    taken ||= numbersIn(dir).some((other) => other > number);
  };
  // The time of the file system, which all that share it have in common.
  const beating = clock.every(beat_ms, () => {
    attempt(look);
    attempt(() => writeSync(fd, mine, 0));
  });
  return {
    check() {
      if (clock.now() - looked > lease_ms / 2) look();
      if (taken) throw new SpoolInUse(`the spool ${dir} was taken over by another process`);
    },
    release() {
      // Once: its descriptor may be another file's by now.
      if (released) return;
      released = true;
      beating.cancel();
      open.delete(dir);
      closeSync(fd);
      attempt(() => {
        write(fresh, free);
        renameSync(fresh, path);
      });
    },
  };
}

function take(dir: string, fresh: string, mine: string): number {
  write(fresh, mine);
  try {
    for (;;) {
      const standing = numbersIn(dir);
      for (const number of standing) {
        const owner = liveOwner(pathOf(dir, number), fresh);
        if (owner !== undefined) throw new SpoolInUse(`the spool ${dir} is in use by ${owner}`);
      }
      const number = Math.max(0, ...standing) + 1;
      const path = pathOf(dir, number);
      if (!give(fresh, path, mine)) continue;
      // Who was slow between looking and taking may have got a number whose time is over.
      if (numbersIn(dir).some((other) => other > number)) {
        attempt(() => unlinkSync(path));
        continue;
      }
      for (const old of standing) if (old < number - 1) attempt(() => unlinkSync(pathOf(dir, old)));
      return number;
    }
  } finally {
    attempt(() => unlinkSync(fresh));
  }
}

/** That file under this name, unless there is one. */
function give(fresh: string, path: string, text: string): boolean {
  try {
    linkSync(fresh, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    // A file system without links: it is empty for a moment, and counts by its age then.
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS') throw error;
  }
  try {
    write(path, text, 'wx');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

/** What to call the owner, if it lives. @param now a file that was written just now */
function liveOwner(path: string, now: string): string | undefined {
  let text: string;
  let silent_ms: number;
  try {
    text = readFileSync(path, 'utf8');
    silent_ms = statSync(now).mtimeMs - statSync(path).mtimeMs;
  } catch {
    return undefined;
  }
  if (text === free) return undefined;
  const [number = '', mark = '', place = here()] = text.trim().split(' ');
  const pid = Number(number);
  if (Number.isSafeInteger(pid) && pid > 0 && place === here())
    return pid !== process.pid && alive(pid, mark) ? `process ${number}` : undefined;
  if (silent_ms > lease_ms) return undefined;
  return `process ${number} of another machine or container, alive ${Math.max(0, Math.round(silent_ms / 1000))} s ago`;
}

function alive(pid: number, mark: string): boolean {
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

/** Where a process's number means something: since when this machine runs, and in which container. */
function here(): string {
  try {
    const started = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${started}/${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]}`;
  } catch {
    return encodeURIComponent(hostname());
  }
}

/** `lock` was that of versions before numbers. */
const numbersIn = (dir: string): number[] =>
  readdirSync(dir).flatMap((name) => {
    const found = /^lock(?:\.(\d+))?$/.exec(name);
    return found === null ? [] : [Number(found[1] ?? 0)];
  });
const pathOf = (dir: string, number: number) => join(dir, number === 0 ? 'lock' : `lock.${number}`);

function write(path: string, text: string, flag = 'w'): void {
  const fd = openSync(path, flag, 0o600);
  try {
    writeSync(fd, text);
  } finally {
    closeSync(fd);
  }
}

function attempt(run: () => void): void {
  try {
    run();
  } catch {}
}
