/** Rules of the house that no linter has: time only through `Clock`, the environment only through `config`. */
import { report, repositoryFiles, textOf } from './root.mjs';

const product = /^(packages|apps)\/[^/]+\/src\/.*\.tsx?$/;
const tests = /\/examples\/|\.test\.tsx?$|\/contract(\/|\.ts$)|\/testing(\/|\.ts$)|^packages\/testkit\//;

const rules = [
  {
    name: 'time comes from Clock',
    pattern: /(?<![.\w])(?:Date\.now|performance\.now|setTimeout|setInterval|setImmediate)\s*\(|\bnew Date\(\)/,
    // The clocks themselves; the SDKs, which bring their own; what waits for other processes; the browser.
    allowed:
      /^packages\/runtime\/src\/clock\.ts$|^packages\/client\/src\/socket\.ts$|^packages\/agent-link\/src\/clock\.ts$|^packages\/devstack\/src\/time\.ts$|^packages\/store\/src\/schema-engine\/|^apps\/web\/src\/app\//,
  },
  {
    name: 'the environment is read by config, or handed on by a main.ts',
    pattern: /\bprocess\.env\b/,
    allowed:
      /\/main\.ts$|^packages\/runtime\/src\/config\.ts$|^packages\/devstack\/src\/|^packages\/store\/src\/(migrate\.ts$|schema-engine\/)/,
  },
  {
    name: 'chance comes from Random',
    pattern: /\bMath\.random\s*\(|\brandomUUID\s*\(|\brandomBytes\s*\(/,
    allowed:
      /^packages\/runtime\/src\/random\.ts$|^packages\/store\/src\/schema-engine\/|^packages\/(client|agent-link)\/src\/|^packages\/devstack\/src\/|^apps\/web\/src\/app\//,
  },
  {
    name: 'keys of peers never become properties by assignment',
    pattern: /\bObject\.assign\s*\(/,
    allowed: /^$/,
  },
];

const faults = [];
for (const path of repositoryFiles()) {
  if (!product.test(path) || tests.test(path)) continue;
  const lines = textOf(path).split('\n');
  for (const { name, pattern, allowed } of rules) {
    if (allowed.test(path)) continue;
    lines.forEach((line, at) => {
      const code = line.replace(/^\s*(\*|\/\/).*/, '').replace(/\s\/\/ .*/, '');
      if (pattern.test(code)) faults.push(`${path}:${at + 1}: ${name}: ${line.trim()}`);
    });
  }
}
report(faults);
