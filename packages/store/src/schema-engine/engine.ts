import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { bindMigrationAwareSqlAdapterFactory, type SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import * as bindings from '@prisma/schema-engine-wasm/schema_engine_bg';

/** As much of the global `WebAssembly` as is used; its types are in no library of this project. */
const wasm = (
  globalThis as unknown as {
    readonly WebAssembly: {
      readonly Module: new (bytes: Uint8Array) => object;
      readonly Instance: new (module: object, imports: Record<string, object>) => { readonly exports: Record<string, () => void> };
    };
  }
).WebAssembly;

let started = false;

/** The bindings with the WebAssembly module under them: Node cannot import `.wasm` by itself. */
function engineBindings(): typeof bindings {
  if (started) return bindings;
  const file = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const module = new wasm.Module(readFileSync(join(dirname(file), 'schema_engine_bg.wasm')));
  const { exports } = new wasm.Instance(module, { './schema_engine_bg.js': bindings });
  bindings.__wbg_set_wasm(exports);
  exports.__wbindgen_start?.();
  started = true;
  return bindings;
}

/** The commit of the Prisma engines it was built from. */
export const engineVersion = (): string => engineBindings().version();

/** Calls of the engine's protocol, by name. */
export type Engine = (method: string, params: Record<string, unknown>) => Promise<unknown>;

/** A schema engine on one database; it connects at the first call that needs it. */
export function schemaEngine(factory: SqlMigrationAwareDriverAdapterFactory): Engine {
  let engine: Promise<bindings.SchemaEngine> | undefined;
  return async (method, params) => {
    engine ??= engineBindings().SchemaEngine.new({ datamodels: undefined }, () => {}, bindMigrationAwareSqlAdapterFactory(factory));
    const methods = (await engine) as unknown as Record<string, (params: unknown) => Promise<unknown>>;
    const call = methods[method];
    if (typeof call !== 'function') throw new Error(`the schema engine has no ${method}`);
    return call.call(methods, params);
  };
}
