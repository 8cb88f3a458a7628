// The Prisma command line with the schema engine of this package: `node scripts/prisma.mjs migrate diff …`.
// `generate` needs no engine but wants one to be named, so it works before the package is built.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const prisma = createRequire(import.meta.url).resolve('prisma/build/index.js');
const env = {
  ...process.env,
  PRISMA_SCHEMA_ENGINE_BINARY: join(folder, 'bin', 'schema-engine.mjs'),
  PRISMA_HIDE_UPDATE_MESSAGE: '1',
  CHECKPOINT_DISABLE: '1',
};
const { status, error } = spawnSync(process.execPath, [prisma, ...process.argv.slice(2)], { cwd: folder, env, stdio: 'inherit' });
if (error) throw error;
process.exitCode = status ?? 1;
