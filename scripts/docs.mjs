/**
 * Writes docs/protocol/*.json from the frame table. `--check` writes nothing and exits with 1 when a file is stale.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const protocol = join(root, 'packages/protocol');

execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', protocol], { stdio: 'inherit' });
const { asyncApi, jsonSchema, parseRules } = await import('@iris/protocol/documents');

const rules = parseRules(readFileSync(join(protocol, 'SPEC.md'), 'utf8'));
const fixtures = new Map();
for (const side of readdirSync(join(protocol, 'fixtures')))
  for (const file of readdirSync(join(protocol, 'fixtures', side)))
    fixtures.set(`${side}.${file.replace(/\.json$/, '')}`, JSON.parse(readFileSync(join(protocol, 'fixtures', side, file), 'utf8')));

const documents = {
  'docs/protocol/frames.schema.json': jsonSchema(),
  'docs/protocol/asyncapi.json': asyncApi({ fixtures, rules }),
};
const check = process.argv.includes('--check');
let stale = 0;
for (const [path, document] of Object.entries(documents)) {
  const file = join(root, path);
  const text = `${JSON.stringify(document, null, 1)}\n`;
  if (read(file) === text) continue;
  if (check) {
    stale++;
    console.error(`${path} is stale: npm run docs`);
  } else {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`wrote ${path}`);
  }
}
process.exitCode = stale > 0 ? 1 : 0;

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
