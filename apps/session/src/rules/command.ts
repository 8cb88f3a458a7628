/** The word that may name a command: the first, when it begins with a slash. Paths such as `/usr/bin` are no commands. */
export function commandWord(text: string): string | undefined {
  return /^\s*(\/[\p{L}_][\p{L}\p{N}_-]*)(?=\s|$)/u.exec(text)?.[1]?.toLowerCase();
}

export interface CatalogEntry {
  readonly name: string;
  readonly description: string;
  readonly args_hint?: string;
  readonly category?: string;
  readonly aliases?: readonly string[];
}

/** As a person types it, whether the agent wrote the slash or not. */
export const slashed = (name: string): string => (name.startsWith('/') ? name : `/${name}`);
const same = (name: string, word: string): boolean => slashed(name).toLowerCase() === word;

/** Whether the text is a command that the catalog knows. */
export function isCommand(text: string, catalog: readonly CatalogEntry[]): boolean {
  const word = commandWord(text);
  return word !== undefined && catalog.some(({ name, aliases = [] }) => same(name, word) || aliases.some((alias) => same(alias, word)));
}

export const isStop = (text: string): boolean => commandWord(text) === '/stop';

/** Commands whose name or alias begins with what was typed, those whose name does first. The slash may be missing. */
export function completions(prefix: string, catalog: readonly CatalogEntry[]): CatalogEntry[] {
  const typed = prefix.trim().toLowerCase();
  const wanted = typed.startsWith('/') ? typed : `/${typed}`;
  const begins = (name: string) => slashed(name).toLowerCase().startsWith(wanted);
  const byName = catalog.filter(({ name }) => begins(name));
  return [...byName, ...catalog.filter((entry) => !byName.includes(entry) && (entry.aliases ?? []).some(begins))];
}

/** One catalog of several: the first one's entry counts. */
export function mergeCatalogs(catalogs: readonly (readonly CatalogEntry[])[]): CatalogEntry[] {
  const byName = new Map<string, CatalogEntry>();
  for (const entry of catalogs.flat()) {
    const key = slashed(entry.name).toLowerCase();
    if (!byName.has(key)) byName.set(key, entry);
  }
  return [...byName.values()];
}
