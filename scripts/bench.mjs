/**
 * npm run bench: the measurements of tests/load, with what each is for; `npm run bench -- NAME [its options]` runs one on built packages,
 * `npm run bench -- all` one after another. Figures are ratios of two things in one run: a machine that does much else changes both.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { say } from './step.mjs';

const folder = join(root, 'tests', 'load');
/** A measurement is a file that says how it is called; the others belong to one. */
const benches = readdirSync(folder)
  .filter((file) => file.endsWith('.mjs'))
  .map((file) => ({ name: file.slice(0, -'.mjs'.length), ...headOf(join(folder, file)) }))
  .filter(({ usage }) => usage !== undefined);

function headOf(file) {
  const [, head = ''] = /^\/\*\*\n([\s\S]*?)\*\//.exec(readFileSync(file, 'utf8')) ?? [];
  const lines = head.split('\n').map((line) => line.replace(/^ \* ?/, ''));
  const about = lines
    .slice(0, lines.indexOf(''))
    .join(' ')
    .replace(/^(.*?\.) .*$/, '$1');
  const usage = lines.find((line) => line.includes('node tests/load/'))?.trim();
  return { about, usage: usage?.replace(/^.*?node tests\/load\/(\S+)\.mjs/, 'npm run bench -- $1').replace(/ (?=\[|-)/, ' ') };
}

const [name, ...options] = process.argv.slice(2);
const chosen = name === 'all' ? benches : benches.filter((bench) => bench.name === name);
if (chosen.length === 0) {
  if (name !== undefined) say(`there is no ${name}`);
  for (const { name, about, usage } of benches) say(`${name}\n  ${about}\n  ${usage}`);
  process.exit(name === undefined ? 0 : 1);
}
await prepare({ code: 'all', page: false });
let failed = 0;
for (const { name } of chosen) {
  if (chosen.length > 1) say(`── ${name} ──`);
  const { status } = spawnSync(process.execPath, [join(folder, `${name}.mjs`), ...options], { cwd: root, stdio: 'inherit' });
  if (status !== 0) failed++;
}
process.exit(failed === 0 ? 0 : 1);
