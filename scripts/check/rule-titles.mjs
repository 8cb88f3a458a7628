/** Rules of SPEC.md and titles of tests: every id in a title is a rule, and every rule that is built stands in a title. */
import { report, repositoryFiles, textOf } from './root.mjs';

const rules = new Map();
for (const line of textOf('packages/protocol/SPEC.md').split('\n')) {
  const match = /^- \*\*([A-Z]{3}\d+)\*\* (.+)$/.exec(line);
  if (match !== null) rules.set(match[1], { later: match[2].endsWith(' — later'), text: match[2] });
}
const families = new Set([...rules.keys()].map((id) => id.slice(0, 3)));
/** A title begins with the ids it holds, those of cases and checks (`C41`, `O3`) among them: `'MSG1, MSG4: the echo …'`. */
const title = /(['"`])(?<ids>[A-Z]{1,3}\d+(?:(?:,? | and )[A-Z]{1,3}\d+)*)\b[^'"`\n]/g;

const titled = new Set();
const faults = [];
for (const path of repositoryFiles()) {
  if (!/\.test\.tsx?$|\/contract(\/.*)?\.ts$/.test(path)) continue;
  const source = textOf(path);
  for (const match of source.matchAll(title)) {
    for (const [id] of match.groups.ids.matchAll(/\b[A-Z]{3}\d+\b/g)) {
      if (!families.has(id.slice(0, 3))) continue;
      titled.add(id);
      if (!rules.has(id)) faults.push(`${path}:${source.slice(0, match.index).split('\n').length}: ${id} is no rule of SPEC.md`);
    }
  }
}
const missing = [...rules].filter(([id, { later }]) => !later && !titled.has(id));
for (const [id, { text }] of missing) faults.push(`no test is titled with ${id}: ${text}`);
if (faults.length > 0) faults.push(`${missing.length} of ${rules.size} rules are built and stand in no title`);
report(faults);
