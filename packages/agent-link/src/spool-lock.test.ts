import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { manualClock, seededRandom } from '@iris/runtime/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { lockSpool, SpoolInUse, type SpoolLock } from './spool-lock.js';

const folders: string[] = [];
const locks: SpoolLock[] = [];
const folder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'iris-lock-'));
  folders.push(dir);
  return dir;
};
const lockIn = (dir: string, clock = manualClock()): SpoolLock => {
  const lock = lockSpool(dir, { clock, random: seededRandom(folders.length).unit });
  locks.push(lock);
  return lock;
};
afterEach(() => {
  for (const lock of locks.splice(0)) lock.release();
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true });
});

describe('the lock of a spool', () => {
  test('an owner in another container or on another machine has it as long as it gives signs of life', () => {
    const dir = folder();
    const path = join(dir, 'lock.3');
    // This very process’s number, which means another process there.
    writeFileSync(path, `${process.pid} 17 another-machine/4026531836\n`);
    expect(() => lockIn(dir)).toThrow(/in use by process \d+ of another machine or container/);
    const at = (ago_s: number) => utimesSync(path, Date.now() / 1000, Date.now() / 1000 - ago_s);
    at(10);
    expect(() => lockIn(dir)).toThrow(SpoolInUse);
    at(16);
    lockIn(dir);
    expect(readdirSync(dir).sort()).toEqual(['lock.3', 'lock.4']);
  });

  test('the owner gives signs of life, and notices when it was taken for dead', async () => {
    const dir = folder();
    const clock = manualClock();
    const lock = lockIn(dir, clock);
    const path = join(dir, 'lock.1');
    const mine = readFileSync(path, 'utf8');
    writeFileSync(path, 'x'.repeat(mine.length));
    await clock.advance(4_000);
    expect(readFileSync(path, 'utf8')).toBe(mine);
    lock.check();
    writeFileSync(join(dir, 'lock.2'), '1 1 another-machine/1\n');
    await clock.advance(4_000);
    expect(() => lock.check()).toThrow('was taken over');
    lock.release();
    // The new owner’s stays as it is.
    expect(readFileSync(join(dir, 'lock.2'), 'utf8')).toBe('1 1 another-machine/1\n');
  });

  test('one that stood still looks before it writes', async () => {
    const dir = folder();
    let now = 0;
    const still = { now: () => now, every: () => ({ cancel() {} }), after: () => ({ cancel() {} }), soon() {} };
    const lock = lockSpool(dir, { clock: still, random: seededRandom(1).unit });
    locks.push(lock);
    writeFileSync(join(dir, 'lock.2'), '1 1 another-machine/1\n');
    now = 60_000;
    expect(() => lock.check()).toThrow('was taken over');
  });
});
