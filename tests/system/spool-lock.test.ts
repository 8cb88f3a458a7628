import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from '@jest/globals';
import { transformFileSync } from '@swc/core';

const folders: string[] = [];
const folder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'iris-lock-'));
  folders.push(dir);
  return dir;
};
afterEach(() => {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true });
});

/** The code as it is, for processes that have no loader of ours; each of its steps in the file system takes its time, so that others come in between. */
const compiled = (dir: string, names: readonly string[]) => {
  const used = new Set<string>();
  for (const name of names) {
    const source = fileURLToPath(new URL(`../../packages/agent-link/src/${name}.ts`, import.meta.url));
    const { code } = transformFileSync(source, { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' } });
    for (const word of /import \{([^}]*)\} from ['"]node:fs['"]/.exec(code)?.[1]?.split(',') ?? []) used.add(word.trim());
    writeFileSync(join(dir, `${name}.js`), code.replace(/['"]node:fs['"]/, "'./slow-fs.js'"));
  }
  const slow = `import fs from 'node:fs';
const slow = (call) => (...args) => {
  for (const until = performance.now() + Math.random() * 0.4; performance.now() < until; );
  return call(...args);
};
${[...used].map((word) => `export const ${word} = slow(fs.${word});`).join('\n')}`;
  writeFileSync(join(dir, 'slow-fs.js'), slow);
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
};

/** Takes the lock as often as it can; while it has it nobody else may. Leaves it like a process that died, or as one that was done. */
const contender = `
import { closeSync, openSync, readdirSync, unlinkSync, writeFileSync, renameSync } from 'node:fs';
import { lockSpool, SpoolInUse } from './spool-lock.js';
const dir = process.argv[2];
const clock = { now: Date.now, every: () => ({ cancel() {} }) };
let taken = 0;
for (const until = Date.now() + 40_000; taken < 25 && Date.now() < until; ) {
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
  for (const until = performance.now() + 4; performance.now() < until; );
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
  expect(await Promise.all([run(), run(), run(), run()])).toEqual(['25', '25', '25', '25']);
  expect(readdirSync(dir).filter((name) => !/^lock[.]\d+$/.test(name))).toEqual([]);
  expect(readdirSync(dir)).toHaveLength(2);
});
