/**
 * Writes docs/protocol/*.json from the frame table, and docs/api/openapi.json from the admin API's schemas. `--check` writes nothing and exits with 1 when a file is stale.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const protocol = join(root, 'packages/protocol');

const control = join(root, 'apps/control');
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', protocol, control], { stdio: 'inherit' });
const { asyncApi, jsonSchema, parseRules } = await import('@iris/protocol/documents');

const rules = parseRules(readFileSync(join(protocol, 'SPEC.md'), 'utf8'));
const fixtures = new Map();
for (const side of readdirSync(join(protocol, 'fixtures')))
  for (const file of readdirSync(join(protocol, 'fixtures', side)))
    fixtures.set(`${side}.${file.replace(/\.json$/, '')}`, JSON.parse(readFileSync(join(protocol, 'fixtures', side, file), 'utf8')));

/** The admin API as it describes itself. */
async function openApi() {
  const from = (workspace) => import(pathToFileURL(join(root, workspace, 'dist/index.js')).href);
  const [{ buildApi, defaultControlConfig }, { memoryStore }, { memoryHub }, runtime] = await Promise.all(
    ['apps/control', 'packages/store', 'packages/bus', 'packages/runtime'].map(from),
  );
  const { systemClock: clock, systemRandom: random, silentLog: log } = runtime;
  const deps = { store: memoryStore(), bus: memoryHub({ clock }).connect(), clock, random, log };
  const api = await buildApi(deps, { ...defaultControlConfig, admin_token: 'nobody-asks-it' });
  const document = api.swagger();
  await api.close();
  return document;
}

const documents = {
  'docs/api/openapi.json': await openApi(),
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
