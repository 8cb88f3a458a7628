/**
 * Everything that can be said of the code without running it. Runs every step, says which failed, and exits with 1 when one did.
 * `npm run check -- types directions` runs only those.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './check/root.mjs';

const node = process.execPath;
const local = (file) => join(root, 'node_modules', file);
const script = (file, ...words) => [node, [join(root, 'scripts', file), ...words]];

/** In order: what is quick, and what others lean on, first. */
const steps = {
  format: () => [node, [local('@biomejs/biome/bin/biome'), 'check', '--error-on-warnings', '.']],
  generate: () =>
    existsSync(join(root, 'packages/store/src/generated')) ? null : ['npm', ['run', 'build', '--silent', '-w', '@iris/store']],
  types: () => [node, [local('typescript/bin/tsc'), '-b']],
  directions: () => script('check/directions.mjs'),
  house: () => script('check/house-rules.mjs'),
  rules: () => script('check/rule-titles.mjs'),
  unused: () => [node, [local('knip/bin/knip.js'), '--no-progress', '--no-config-hints']],
  documents: () => script('docs.mjs', '--check'),
  tracked: () => script('check/tracked-files.mjs'),
  dependencies: () => script('check/dependencies.mjs'),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(steps, name));
if (unknown.length > 0) {
  console.error(`no such step: ${unknown.join(', ')} (there are ${Object.keys(steps).join(', ')})`);
  process.exit(2);
}

const failed = [];
for (const [name, step] of Object.entries(steps)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const command = step();
  if (command === null) continue;
  const begun = performance.now();
  const { code, output } = await run(...command);
  const took = `${((performance.now() - begun) / 1000).toFixed(1)} s`;
  const notes = output.split('\n').filter((line) => line.startsWith('note: '));
  if (code === 0) console.log([`ok    ${name} (${took})`, ...notes.map((line) => `      ${line}`)].join('\n'));
  else {
    failed.push(name);
    console.log(`${output.trimEnd()}\nFAIL  ${name} (${took})`);
  }
}
console.log(failed.length === 0 ? 'check: all well' : `check: failed: ${failed.join(', ')}`);
process.exit(failed.length === 0 ? 0 : 1);

function run(command, words) {
  return new Promise((resolve) => {
    const child = spawn(command, words, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      output += chunk;
    });
    child.on('error', (error) => resolve({ code: 1, output: `${command}: ${error.message}` }));
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}
