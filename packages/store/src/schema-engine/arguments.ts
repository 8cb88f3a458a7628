/** What the Prisma command line asks of a schema engine, read from its arguments. */
export type EngineCall =
  | { readonly kind: 'version' }
  | { readonly kind: 'can_connect' | 'create_database' | 'drop_database'; readonly url: string }
  | { readonly kind: 'serve'; readonly url: string };

/**
 * @param args without the program's name
 * @throws when no database address is given
 */
export function engineCall(args: readonly string[], env: Readonly<Record<string, string | undefined>>): EngineCall {
  if (args.includes('--version')) return { kind: 'version' };
  const url = datasourceUrl(args) ?? env.DATABASE_URL;
  if (url === undefined) throw new Error('no --datasource and no DATABASE_URL');
  if (!args.includes('cli')) return { kind: 'serve', url };
  if (args.includes('create-database')) return { kind: 'create_database', url };
  if (args.includes('drop-database')) return { kind: 'drop_database', url };
  return { kind: 'can_connect', url };
}

function datasourceUrl(args: readonly string[]): string | undefined {
  const at = args.indexOf('--datasource');
  const given = at < 0 ? undefined : args[at + 1];
  if (given === undefined) return undefined;
  const parsed = parse(given) ?? parse(Buffer.from(given, 'base64').toString('utf8'));
  return typeof parsed?.url === 'string' ? parsed.url : undefined;
}

function parse(source: string): { readonly url?: unknown } | undefined {
  try {
    return JSON.parse(source) as { url?: unknown };
  } catch {
    return undefined;
  }
}
