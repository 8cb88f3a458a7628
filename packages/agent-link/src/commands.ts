import type { CatalogEntry, Command, TurnHandler } from './types.js';

/** The catalog as it is sent, and what each name runs. */
export interface Catalog {
  readonly entries: readonly CatalogEntry[];
  /** The same for the same catalog, so that the gateway sees whether it changed. */
  readonly rev: string;
  readonly byName: ReadonlyMap<string, Command>;
}

export function catalogOf(commands: readonly Command[]): Catalog {
  const entries = commands.map(({ run: _, ...entry }) => entry);
  const byName = new Map<string, Command>();
  for (const command of commands) for (const name of [...(command.aliases ?? []), command.name]) byName.set(name.toLowerCase(), command);
  return { entries, rev: revisionOf(JSON.stringify(entries)), byName };
}

/** The command that a text begins with. */
export function commandOf(catalog: Catalog, text: string): { name: string; args: string; run?: TurnHandler } | undefined {
  const [, word = '', args = ''] = /^\s*(\/\S+)\s*([\s\S]*)$/.exec(text) ?? [];
  const command = catalog.byName.get(word.toLowerCase());
  return command && { name: command.name, args: args.trimEnd(), ...(command.run ? { run: command.run } : {}) };
}

/** FNV-1a, 32 bit: short, stable, and enough to tell two catalogs apart. */
function revisionOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
