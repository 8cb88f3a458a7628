/** Layers are chosen by scripts/test.mjs with --selectProjects; `iris-source` makes workspaces resolve to their TypeScript. */
const common = {
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['iris-source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts', '.tsx'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.tsx?$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript', tsx: true } }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/'],
};
const layer = (displayName, testMatch, more = {}) => ({
  ...common,
  displayName,
  testMatch: testMatch.map((glob) => `<rootDir>/${glob}`),
  ...more,
});
export default {
  // A failsafe, not an expectation: a machine that does much else must not fail a test. Jest reads it here only.
  testTimeout: 60_000,
  projects: [
    layer('unit', ['packages/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts', 'scripts/**/*.test.ts']),
    layer('contract', ['tests/contract/**/*.test.ts']),
    layer('flow', ['tests/flow/**/*.test.ts']),
    layer('system', ['tests/system/**/*.test.ts']),
    layer('browser', ['tests/browser/**/*.test.ts']),
  ],
};
