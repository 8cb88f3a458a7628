import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { takeDataFolder } from './data-folder.js';
import { endLeftovers, isAlive, livingMark, writeMark } from './pids.js';

let dir: string;
const children: { kill(signal: 'SIGKILL'): boolean }[] = [];
beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), 'iris-folder-')), 'data');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(join(dir, '..'), { recursive: true, force: true });
});

const take = (fresh = false, said: string[] = []) => takeDataFolder({ dir, fresh, say: (line) => said.push(line) });

/** A process that says when it runs, and lives until it is ended. */
async function sleeper(): Promise<{ pid: number; gone: Promise<unknown> }> {
  const child = spawn(process.execPath, ['-e', 'console.log("up"); setInterval(() => {}, 1000)'], { stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  await once(child.stdout!, 'data');
  return { pid: child.pid!, gone: once(child, 'exit') };
}

test('secrets are made once, kept, and readable by their owner only', async () => {
  const first = await take();
  const secret = first.secret('admin_token');
  expect(secret).toMatch(/^[A-Za-z0-9_-]{32}$/);
  expect(first.secret('other')).not.toBe(secret);
  expect(statSync(first.path('secrets.json')).mode & 0o777).toBe(0o600);
  first.release();
  expect((await take()).secret('admin_token')).toBe(secret);
});

test('fresh forgets everything that was kept', async () => {
  const first = await take();
  const secret = first.secret('admin_token');
  first.write('tenants.json', [1]);
  first.release();
  const second = await take(true);
  expect(second.read('tenants.json')).toBeUndefined();
  expect(second.secret('admin_token')).not.toBe(secret);
});

test('a folder that is somebody else’s is left alone, also with fresh', async () => {
  mkdirSync(dir);
  writeFileSync(join(dir, 'thesis.txt'), 'years of work');
  await expect(take(true)).rejects.toThrow('not empty and not ours');
  expect(readFileSync(join(dir, 'thesis.txt'), 'utf8')).toBe('years of work');
});

test('a folder that another start has is refused, also with fresh; once that one is gone it is free', async () => {
  (await take()).release();
  const other = await sleeper();
  writeMark(join(dir, 'run'), 'start', other.pid, 'SIGTERM');
  await expect(take()).rejects.toThrow(`in use by another start (pid ${other.pid})`);
  await expect(take(true)).rejects.toThrow('in use');
  process.kill(other.pid, 'SIGKILL');
  await other.gone;
  await expect(take()).resolves.toBeDefined();
});

test('what a killed start left running is ended, and named', async () => {
  (await take()).release();
  const left = await sleeper();
  writeMark(join(dir, 'run'), 'redis', left.pid, 'SIGTERM');
  const said: string[] = [];
  await take(false, said);
  await left.gone;
  expect(isAlive(left.pid)).toBe(false);
  expect(said).toEqual(['ended what an earlier start had left running: redis']);
});

test('a process that merely has the number of one of ours is not touched', async () => {
  const run_dir = join(dir, 'run');
  const stranger = await sleeper();
  writeMark(run_dir, 'redis', stranger.pid, 'SIGTERM');
  const file = join(run_dir, 'redis.pid.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), started: '1' }));
  expect(livingMark(run_dir, 'redis')).toBeUndefined();
  expect(await endLeftovers(run_dir)).toEqual([]);
  expect(isAlive(stranger.pid)).toBe(true);
});
