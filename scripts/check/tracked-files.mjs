/** What must not be in the repository: large or binary files, paths of this machine, addresses of package registries. */
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { report, repositoryFiles, root } from './root.mjs';

const KiB = 1024;
const binaryMax = 64 * KiB;
const textMax = 512 * KiB;
/** The lock file is as large as what it locks; generated documents as large as the protocol. */
const large = /^(package-lock\.json|docs\/protocol\/.*\.json)$/;

const quoted = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
// Whatever machine this runs on, its own places must not stand in a file: the clone, the folder around it, a home that is somebody's.
const places = [root, dirname(root), homedir()]
  .filter((path) => path.split('/').length > 2 || path === dirname(root))
  .filter((path) => path !== '/');
const machine = new RegExp(`(?<![\\w.-])(?:${[...new Set(places)].map(quoted).join('|')})(?=/[\\w.])`);
const registry = registryHost();
const registries = new RegExp(['"resolved":\\s*"https?://', ...(registry === undefined ? [] : [quoted(registry)])].join('|'));

const faults = [];
for (const path of repositoryFiles()) {
  const file = join(root, path);
  if (!statSync(file).isFile()) continue;
  const bytes = readFileSync(file);
  const binary = bytes.subarray(0, 8 * KiB).includes(0);
  if (binary && bytes.length > binaryMax) faults.push(`${path}: binary, ${Math.ceil(bytes.length / KiB)} KiB (at most ${binaryMax / KiB})`);
  if (!binary && bytes.length > textMax && !large.test(path))
    faults.push(`${path}: ${Math.ceil(bytes.length / KiB)} KiB (at most ${textMax / KiB})`);
  if (binary) continue;
  bytes
    .toString('utf8')
    .split('\n')
    .forEach((line, at) => {
      if (machine.test(line)) faults.push(`${path}:${at + 1}: a path of this machine`);
      if (registries.test(line)) faults.push(`${path}:${at + 1}: the address of a package registry`);
    });
}
report(faults);

/** The registry that this machine installs from, when it is not the public one. */
function registryHost() {
  try {
    const { host } = new URL(execFileSync('npm', ['config', 'get', 'registry'], { cwd: root, encoding: 'utf8' }).trim());
    return host === 'registry.npmjs.org' ? undefined : host;
  } catch {
    return undefined;
  }
}
