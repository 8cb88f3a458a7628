import { createInterface } from 'node:readline';
import { engineCall } from './arguments.js';
import { connectErrorCode, engineDatabase } from './database.js';
import { engineVersion, schemaEngine } from './engine.js';
import { serveRpc } from './rpc.js';

/**
 * Stands in for the native schema engine of the Prisma command line, by the WebAssembly build of the same engine and the
 * driver that the product uses anyway: nothing is downloaded. Named to the command line by `PRISMA_SCHEMA_ENGINE_BINARY`.
 * @returns the exit code
 */
export async function main(args: readonly string[]): Promise<number> {
  const call = engineCall(args, process.env);
  if (call.kind === 'version') {
    process.stdout.write(`schema-engine-cli ${engineVersion()}\n`);
    return 0;
  }
  const database = engineDatabase(call.url);
  if (call.kind === 'serve') {
    await serveRpc(createInterface({ input: process.stdin }), schemaEngine(database.factory), (line) => process.stdout.write(`${line}\n`));
    return 0;
  }
  // The command line passes over the first line: the stock engine's own greeting.
  logLine('INFO', { message: 'Starting schema engine CLI' });
  try {
    if (call.kind === 'can_connect') await database.canConnect();
    else if (call.kind === 'create_database') await database.create();
    else await database.drop();
    return 0;
  } catch (error) {
    const message = (error instanceof Error && error.message) || String((error as { code?: unknown }).code ?? error);
    logLine('ERROR', { is_panic: false, error_code: connectErrorCode(error), message, meta: { database_name: database.name } });
    return 1;
  }
}

function logLine(level: 'INFO' | 'ERROR', fields: Record<string, unknown>): void {
  process.stderr.write(`${JSON.stringify({ timestamp: new Date().toISOString(), level, fields, target: 'schema_engine::logger' })}\n`);
}
