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

/** The engine panicked: a fault of its own. Nothing more comes from it, not even a failure of the call. */
export class EnginePanic extends Error {
  override readonly name = 'EnginePanic';
}

/** A schema engine on one database; it connects at the first call that needs it. */
export function schemaEngine(factory: SqlMigrationAwareDriverAdapterFactory): Engine {
  let engine: Promise<bindings.SchemaEngine> | undefined;
  let panicked: (panic: EnginePanic) => void = () => {};
  // The module tells a panic to this global, and to nobody else.
  Reflect.set(globalThis, 'PRISMA_WASM_PANIC_REGISTRY', { set_message: (message: string) => panicked(new EnginePanic(message)) });
  const bound = bindMigrationAwareSqlAdapterFactory(factory);
  /** What the driver threw goes through the engine as a number; here it is itself again. */
  const original = (error: unknown): unknown => {
    const id = /^External error id#(\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
    return (id === undefined ? undefined : bound.errorRegistry.consumeError(Number(id))?.error) ?? error;
  };
  return (method, params) =>
    new Promise((resolve, reject) => {
      panicked = reject;
      engine ??= engineBindings().SchemaEngine.new({ datamodels: undefined }, () => {}, bound);
      engine
        .then((started) => {
          const call = (started as unknown as Record<string, ((params: unknown) => Promise<unknown>) | undefined>)[method];
          if (typeof call !== 'function') throw new Error(`the schema engine has no ${method}`);
          return call.call(started, params);
        })
        .then(resolve, (error: unknown) => reject(original(error)));
    });
}
