// What must be there before anything of ours can run: npm packages and the built code. Plain Node, no dependencies.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithNpm, step } from './step.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));
const inRoot = (...path) => join(root, ...path);
const readJson = (path) => {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
};

/**
 * Install and build what is missing or stale. Done before: takes a fraction of a second.
 * @param {{code: 'all' | 'product' | 'none' | readonly string[], page: boolean}} wanted which workspaces must be compiled (`product`: all
 * but what only tests need), and whether the browser client is wanted too
 */
export async function prepare({ code, page }) {
  endWithNpm();
  await install();
  checkNode();
  await generate();
  if (code === 'product') await compile(workspaces().filter((path) => path !== 'packages/testkit'));
  else if (code !== 'none') await compile(code === 'all' ? workspaces() : code);
  if (page) await buildPage();
}

/** `npm ci`, unless what is installed is what the lock file says. */
export async function install() {
  if (isInstalled()) return;
  // Install scripts are run below, and only those that package.json allows, whichever npm this is.
  await step('installing npm packages', ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: root });
  for (const [name, allowed] of Object.entries(readJson(inRoot('package.json')).allowScripts)) {
    const folder = inRoot('node_modules', name);
    const script = readJson(join(folder, 'package.json'))?.scripts?.postinstall;
    if (!allowed || script === undefined) continue;
    await step(`setting up ${name}`, [process.execPath, ...script.replace(/^node /, '').split(' ')], { cwd: folder });
  }
}

/** npm keeps a copy of the lock file of what it has installed, written last. */
function isInstalled() {
  const wanted = readJson(inRoot('package-lock.json'));
  const got = readJson(inRoot('node_modules', '.package-lock.json'));
  if (wanted === undefined) throw new Error('package-lock.json is missing or broken: is this a whole clone?');
  if (got === undefined) return false;
  return Object.entries(wanted.packages).every(([path, entry]) => {
    if (!path.startsWith('node_modules/') || entry.optional) return true;
    return (
      Object.hasOwn(got.packages, path) && got.packages[path].version === entry.version && got.packages[path].integrity === entry.integrity
    );
  });
}

/** The WebSocket server is a native addon with a file for each version of Node. */
function checkNode() {
  const { platform, arch, versions } = process;
  const file = `uws_${platform}_${arch}_${versions.modules}.node`;
  if (existsSync(inRoot('node_modules', 'uWebSockets.js', file))) return;
  throw new Error(`the WebSocket server has no build for Node ${versions.node} on ${platform}-${arch} (${file}): use Node 20, 22 or 24`);
}

const common = ['package-lock.json', 'tsconfig.base.json'];
const bin = (name) => [process.execPath, inRoot('node_modules', ...name.split('/'))];

/** Every workspace that has code to compile. */
function workspaces() {
  const all = ['packages', 'apps'].flatMap((kind) => readdirSync(inRoot(kind)).map((name) => `${kind}/${name}`));
  return all.filter((path) => existsSync(inRoot(path, 'tsconfig.json')));
}

/** Prisma's client is code made from the schema. */
async function generate() {
  const store = 'packages/store';
  const from = [...common, `${store}/prisma`, `${store}/prisma.config.ts`, `${store}/package.json`];
  await cached('generated', { from, made: [`${store}/src/generated`] }, () =>
    step('generating the database client', [process.execPath, inRoot(store, 'scripts', 'prisma.mjs'), 'generate'], { cwd: root }),
  );
}

/** What was compiled before counts for any part of it. */
async function compile(paths) {
  const from = [...common, ...workspaces().flatMap((path) => [`${path}/src`, `${path}/tsconfig.json`, `${path}/package.json`])];
  await cached('compiled', { from, made: paths.map((path) => `${path}/dist`), of: paths }, (missing) => {
    // The compiler trusts its notes about what it has written: without the files they are wrong.
    for (const path of missing) rmSync(inRoot(path, '..', 'tsconfig.tsbuildinfo'), { force: true });
    return step('compiling', [...bin('typescript/bin/tsc'), '--build', ...paths], { cwd: root });
  });
}

async function buildPage() {
  const parts = ['src', 'index.html', 'public', 'vite.config.ts', 'package.json'];
  const from = [
    ...common,
    ...['apps/web', 'packages/client', 'packages/protocol'].flatMap((path) => parts.map((part) => `${path}/${part}`)),
  ];
  await cached('page', { from, made: ['apps/web/dist/page/index.html'] }, () =>
    step('building the web client', [...bin('vite/bin/vite.js'), 'build', '--logLevel', 'error'], { cwd: inRoot('apps', 'web') }),
  );
}

/**
 * Run `make` unless it was run before with the same input and its output is still there.
 * @param {string} name
 * @param {{from: string[], made: string[], of?: readonly string[]}} what files and folders that go in and come out, and which of
 * several things are made
 * @param {(missing: string[]) => Promise<unknown>} make
 */
async function cached(name, { from, made, of = [] }, make) {
  const stamp = inRoot('node_modules', '.cache', 'iris', `${name}.json`);
  const hash = createHash('sha256').update(process.version);
  for (const path of from) hashTree(hash, inRoot(path));
  const now = hash.digest('hex');
  const before = readJson(stamp);
  const known = before?.hash === now ? before.of : [];
  const missing = made.filter((path) => !existsSync(inRoot(path)));
  if (missing.length === 0 && before?.hash === now && of.every((one) => known.includes(one))) return;
  await make(missing);
  mkdirSync(join(stamp, '..'), { recursive: true });
  writeFileSync(stamp, JSON.stringify({ hash: now, of: [...new Set([...known, ...of])] }));
}

function hashTree(hash, path) {
  if (!existsSync(path) || /\.test\.tsx?$/.test(path)) return;
  if (statSync(path).isFile()) return void hash.update(`\n${relative(root, path)}\n`).update(readFileSync(path));
  for (const name of readdirSync(path).sort()) hashTree(hash, join(path, name));
}
