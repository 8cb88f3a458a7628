/**
 * Import directions, by the rules of .dependency-cruiser.cjs. Read twice: swc sees every import of a .ts file but knows no .tsx and no
 * `import('x').Type`; the default reader knows those, but misses `export type … from`.
 */
import { createRequire } from 'node:module';
import { cruise } from 'dependency-cruiser';
import { report, root } from './root.mjs';

process.chdir(root);
const { forbidden, options } = createRequire(import.meta.url)('../../.dependency-cruiser.cjs');
const passes = [{}, { parser: 'swc', exclude: { path: `${options.exclude.path}|\\.tsx$` } }];
const faults = new Set();
for (const pass of passes) {
  const { enhancedResolveOptions, ...rest } = { ...options, ...pass };
  const { output } = await cruise(
    ['packages', 'apps', 'tests'],
    { ...rest, ruleSet: { forbidden }, validate: true },
    enhancedResolveOptions,
  );
  if (output.summary.totalCruised < 50) throw new Error('hardly any file was read: the rules would hold of nothing');
  for (const { from, to, rule } of output.summary.violations) {
    const why = forbidden.find(({ name }) => name === rule.name)?.comment;
    faults.add(`${from} → ${to}: ${rule.name} (${why})`);
  }
}
report([...faults].sort());
