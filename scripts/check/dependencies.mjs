/**
 * What the product is built with: every component has a name, a version, where it comes from with a hash of it, and terms that we can keep
 * (`sbom`); and none of it is known to be dangerous (`npm audit`). A registry that cannot be asked is no fault of the code: that is
 * said in a line, and nothing more is known.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { auditOf } from './audit.mjs';
import { root } from './root.mjs';

const npm = (...words) => spawnSync('npm', words, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, timeout: 60_000 });

/** CycloneDX, of what is shipped. @throws when npm cannot make it */
export function billOfMaterials() {
  const { stdout, stderr, status } = npm('sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev', '--package-lock-only');
  if (status !== 0) throw new Error(`npm sbom: ${stderr.trim() || `status ${status}`}`);
  return JSON.parse(stdout);
}

/** Terms under which we may ship, alone or as one of a choice. MPL, EPL and LGPL bind what they cover, which we ship unchanged. */
const terms =
  /^(MIT|ISC|0BSD|Apache-2\.0|BSD-2-Clause|BSD-3-Clause|Unlicense|CC0-1\.0|BlueOak-1\.0\.0|Python-2\.0|MPL-2\.0|EPL-2\.0|LGPL-3\.0-or-later)$/;
/** Whose package.json says nothing, though a licence lies beside it. */
const looked = new Map([['seq-queue', 'MIT, in its LICENSE file']]);

const namesOf = ({ licenses = [] }) => licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name ?? '');
const kept = (text) =>
  text
    .replaceAll(/[()]/g, '')
    .split(/ (?:OR|AND|or|and) /)
    .every((one) => terms.test(one.trim()));

function faultsOf(bill) {
  const ours = (name) => name.startsWith('@iris/') || name === 'iris-gateway';
  return bill.components.flatMap((component) => {
    const { name, version } = component;
    if (ours(name) || looked.has(name)) return [];
    const licences = namesOf(component);
    return licences.length > 0 && licences.every(kept) ? [] : [`${name}@${version}: terms ${licences.join(', ') || 'unknown'}`];
  });
}

/** Packages of the lock file that could come from anywhere, or be anything. */
function unpinned() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages).flatMap(([path, one]) => {
    if (!path.includes('node_modules/') || one.link || one.inBundle) return [];
    return typeof one.integrity === 'string' ? [] : [`${path}: no hash in package-lock.json`];
  });
}

const audit = () => auditOf(npm('audit', '--json', '--omit=dev', '--fetch-retries=0', '--fetch-timeout=15000').stdout);

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const bill = billOfMaterials();
  const { faults, note } = audit();
  const all = [...faultsOf(bill), ...unpinned(), ...faults];
  for (const fault of all) console.error(fault);
  console.log(`note: ${bill.components.length} components${note === undefined ? ', none known to be dangerous' : `; ${note}`}`);
  process.exitCode = all.length > 0 ? 1 : 0;
}
