import { createRequire } from 'node:module';
import { expect, test } from '@jest/globals';
import type { SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import { EnginePanic, engineVersion, schemaEngine } from './engine.js';

const refuse = () => Promise.reject(new Error('no database here'));
const named = { provider: 'postgres', adapterName: 'none' } as const;

/** Nobody answers. */
const nowhere: SqlMigrationAwareDriverAdapterFactory = { ...named, connect: refuse, connectToShadowDb: refuse };

/** Connects, says that it is empty, and can do nothing then. */
const mute: SqlMigrationAwareDriverAdapterFactory = {
  ...named,
  connect: async () => ({
    ...named,
    queryRaw: async () => ({ columnNames: [], columnTypes: [], rows: [] }),
    executeRaw: async () => 0,
    executeScript: async () => {},
    startTransaction: refuse,
    dispose: async () => {},
  }),
  connectToShadowDb: refuse,
};

test('it is built from the very commit that the Prisma command line expects', () => {
  const cli = createRequire(createRequire(import.meta.url).resolve('prisma/package.json'));
  const engines = createRequire(cli.resolve('@prisma/engines/package.json'));
  const { prisma } = engines('@prisma/engines-version/package.json') as { prisma: { enginesVersion: string } };
  expect(engineVersion()).toBe(prisma.enginesVersion);
});

test('a panic of the engine fails the call that met it', async () => {
  await expect(schemaEngine(mute)('debugPanic', {})).rejects.toBeInstanceOf(EnginePanic);
});

test('an unknown method is an error', async () => {
  await expect(schemaEngine(mute)('nonsense', {})).rejects.toThrow('no nonsense');
});

test('without a database, a call that needs one says why', async () => {
  await expect(schemaEngine(nowhere)('version', {})).rejects.toThrow('no database here');
});
