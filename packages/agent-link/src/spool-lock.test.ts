import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manualClock, seededRandom } from '@iris/runtime/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { transformFileSync } from '@swc/core';
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

/** The code as it is, for processes that have no loader of ours. */
const compiled = (dir: string, names: readonly string[]) => {
  for (const name of names) {
    const source = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
    const { code } = transformFileSync(source, { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' } });
    writeFileSync(join(dir, `${name}.js`), code);
  }
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
};

/** Takes the lock as often as it can; while it has it nobody else may. Leaves it like a process that died, or as one that was done. */
const contender = `
import { closeSync, openSync, readdirSync, unlinkSync, writeFileSync, renameSync } from 'node:fs';
import { lockSpool, SpoolInUse } from './spool-lock.js';
const dir = process.argv[2];
const clock = { now: Date.now, every: () => ({ cancel() {} }) };
let taken = 0;
for (const until = Date.now() + 20_000; taken < 60 && Date.now() < until; ) {
  let lock;
  try {
    lock = lockSpool(dir, { clock, random: Math.random });
  } catch (error) {
    if (!(error instanceof SpoolInUse)) throw error;
    continue;
  }
  try {
    closeSync(openSync(dir + '/holder', 'wx'));
  } catch {
    console.log('two have it');
    process.exit(1);
  }
  for (const until = performance.now() + 0.2; performance.now() < until; );
  unlinkSync(dir + '/holder');
  const mine = readdirSync(dir).map((name) => Number(/^lock[.](.+)$/.exec(name)?.[1] ?? 0)).sort((a, b) => b - a)[0];
  lock.release();
  // As if it had died instead: others find its number, and nobody behind it.
  if (taken++ % 2) {
    writeFileSync(dir + '/dead-' + process.pid, '999999999 1\\n');
    renameSync(dir + '/dead-' + process.pid, dir + '/lock.' + mine);
  }
}
console.log(taken);`;

describe('the lock of a spool', () => {
  test('LNK5: of several processes that find the same dead owner one gets it', async () => {
    const [code, dir] = [folder(), folder()];
    compiled(code, ['spool-lock', 'ids']);
    writeFileSync(join(code, 'contender.js'), contender);
    writeFileSync(join(dir, 'lock.4'), '999999999 1\n');
    const run = () =>
      new Promise<string>((resolve) => {
        const child = spawn(process.execPath, [join(code, 'contender.js'), dir], { stdio: ['ignore', 'pipe', 'pipe'] });
        const said: string[] = [];
        for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => void said.push(String(data)));
        child.once('close', () => resolve(said.join('').trim()));
      });
    expect(await Promise.all([run(), run(), run(), run()])).toEqual(['60', '60', '60', '60']);
    expect(readdirSync(dir).filter((name) => !/^lock[.]\d+$/.test(name))).toEqual([]);
    expect(readdirSync(dir)).toHaveLength(2);
  });

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
