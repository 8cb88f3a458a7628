import {
  closeSync,
  existsSync,
  fdatasync,
  fsync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  appendFile as plainAppendFile,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Clock, systemClock } from './clock.js';
import { type Random, randomId } from './ids.js';
import type { Log } from './log.js';
import { applyRecord, emptyState, headOf, type Spool, type SpoolRecord, type SpoolState } from './spool.js';
import { lockSpool } from './spool-lock.js';

const appendFile = promisify(plainAppendFile) as unknown as (fd: number, data: string) => Promise<void>;
const dataSync = promisify(fdatasync);
const fullSync = promisify(fsync);

export interface FileSpoolOptions {
  readonly clock?: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Bytes the file may grow to before it is written anew with what still matters. */
  readonly compact_bytes?: number;
}

/**
 * A spool in a folder of its own: one append-only file of JSON lines, flushed to the disk before what it holds is sent.
 * Opens synchronously, once, when the agent starts.
 * @throws SpoolInUse when another live process has the folder
 */
export function fileSpool(dir: string, options: FileSpoolOptions): Spool {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const lock = lockSpool(dir, { clock: systemClock, ...options });
  const path = join(dir, 'spool.jsonl');
  const fresh = join(dir, 'spool.new');
  const least = options.compact_bytes ?? 1024 * 1024;
  let { state, size, fd } = begin();
  let limit = Math.max(least, 2 * size);
  let torn = false;
  let closed = false;

  function begin(): { state: SpoolState; size: number; fd: number } {
    try {
      return { ...read(path, options), fd: openSync(path, 'a', 0o600) };
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  const append = async (records: readonly SpoolRecord[]): Promise<void> => {
    lock.check();
    const text = lines(records);
    if (size + text.length > limit) return compact();
    // What a failed write left behind must not stand between good lines.
    if (torn) ftruncateSync(fd, size);
    torn = true;
    await appendFile(fd, text);
    if (records.some((record) => record.k !== 'ack')) await dataSync(fd);
    torn = false;
    size += Buffer.byteLength(text);
  };

  /** The state includes the records that are to be appended: the new file stands for both. */
  const compact = async (): Promise<void> => {
    const text = snapshot(state);
    await writeFile(fresh, text, { mode: 0o600, flush: true });
    await rename(fresh, path);
    await syncFolder(dir);
    closeSync(fd);
    fd = openSync(path, 'a', 0o600);
    size = Buffer.byteLength(text);
    limit = Math.max(least, 2 * size);
    torn = false;
  };

  let last: Promise<void> = Promise.resolve();
  return {
    state,
    append(records) {
      last = append(records);
      return last;
    },
    async close() {
      await last.catch(() => {});
      if (closed) return;
      closed = true;
      closeSync(fd);
      lock.release();
    },
  };
}

const lines = (records: readonly SpoolRecord[]): string => records.map((record) => `${JSON.stringify(record)}\n`).join('');
const snapshot = (state: SpoolState): string => lines([headOf(state), ...state.unacked.map((f) => ({ k: 'out', f }) as const)]);

/** The file's state. A torn last line was never acted upon and is cut off; a file that makes no sense is put aside and a new installation begun. */
function read(path: string, { random, log }: FileSpoolOptions): { state: SpoolState; size: number } {
  if (existsSync(path)) {
    const whole = readFileSync(path);
    const size = whole.lastIndexOf(10) + 1;
    try {
      const state = replay(whole.subarray(0, size).toString('utf8'));
      if (state) {
        if (size < whole.length) {
          const fd = openSync(path, 'r+');
          ftruncateSync(fd, size);
          closeSync(fd);
        }
        return { state, size };
      }
    } catch (error) {
      log.error('agent_link.spool_damaged', { error, kept_as: `${path}.damaged` });
      renameSync(path, `${path}.damaged`);
    }
  }
  const state = emptyState(`in_${randomId(random, 20)}`);
  const text = snapshot(state);
  const fd = openSync(path, 'w', 0o600);
  writeSync(fd, text);
  fsyncSync(fd);
  closeSync(fd);
  return { state, size: text.length };
}

function replay(text: string): SpoolState | undefined {
  let state: SpoolState | undefined;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const record = JSON.parse(line) as SpoolRecord;
    if (!state && record.k !== 'head') throw new Error('the spool has no head');
    state ??= emptyState('');
    applyRecord(state, record);
  }
  return state;
}

async function syncFolder(dir: string): Promise<void> {
  const fd = openSync(dir, 'r');
  try {
    await fullSync(fd);
  } finally {
    closeSync(fd);
  }
}
