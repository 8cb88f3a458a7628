import { readFileSync } from 'node:fs';
import type { Static, TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** Where values come from. Later ones win: the schema's default, the environment, `--set`. */
export interface ConfigSource {
  /** Default: the process's environment, which is read nowhere else. `IRIS_<NAME>`; a secret also from the file `IRIS_<NAME>_FILE`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** `--set name=value`, by name. */
  readonly set?: ReadonlyMap<string, string>;
  /** Other schemas that the same `--set`s are for: their names are no mistake here. */
  readonly beside?: readonly TObject[];
}

/** All that is wrong with a configuration, one line each. Never holds the value of a secret. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly faults: readonly string[]) {
    super(`configuration:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
  }
}

/**
 * Typed, checked once, frozen. The schema is flat: names in snake_case with their unit (`ping_ms`, `high_mark_bytes`);
 * values are strings, numbers, booleans, enums, or arrays of strings (written with commas). `secret: true` in a schema's options
 * lets the value come from a file and keeps it out of {@link describeConfig}.
 * An empty environment variable counts as absent.
 * @throws ConfigError naming everything that is wrong
 */
export function loadConfig<S extends TObject>(schema: S, source: ConfigSource = {}): Readonly<Static<S>> {
  const env = source.env ?? process.env;
  const set = source.set ?? new Map<string, string>();
  const faults: string[] = [];
  for (const name of set.keys())
    if (![schema, ...(source.beside ?? [])].some((one) => Object.hasOwn(one.properties, name))) faults.push(`${name}: no such setting`);

  const values: [string, unknown][] = [];
  for (const [name, property] of Object.entries(schema.properties)) {
    const text = set.get(name) ?? fromEnv(env, name, property, faults);
    const value = text === undefined ? structuredClone(fallback(property)) : parse(text, property);
    if (value !== undefined) values.push([name, value]);
  }
  const config: unknown = Object.fromEntries(values);
  const validator = Compile(schema);
  if (!validator.Check(config)) {
    const given = new Set(values.map(([name]) => name));
    for (const fault of validator.Errors(config)) {
      const missing = (fault.params as { requiredProperties?: string[] }).requiredProperties;
      if (missing !== undefined && fault.instancePath === '') {
        for (const name of missing) if (!given.has(name)) faults.push(`${name}: missing (${envName(name)})`);
      } else faults.push(`${fault.instancePath.slice(1).replaceAll('/', '.')}: ${fault.message}`);
    }
  }
  if (faults.length > 0) throw new ConfigError([...new Set(faults)]);
  for (const [, value] of values) Object.freeze(value);
  return Object.freeze(config) as Readonly<Static<S>>;
}

/** `name=value` words, as they come after `--set`. @throws ConfigError when one has no `=` */
export function parseSets(words: readonly string[]): Map<string, string> {
  const sets = new Map<string, string>();
  const faults: string[] = [];
  for (const word of words) {
    const at = word.indexOf('=');
    if (at < 1) faults.push(`${word}: expected name=value`);
    else sets.set(word.slice(0, at).trim().toLowerCase(), word.slice(at + 1));
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return sets;
}

export interface Setting {
  readonly name: string;
  readonly env: string;
  readonly description: string;
  /** As text; undefined when it must be given, or is secret. */
  readonly fallback?: string;
  readonly secret: boolean;
}

/** What can be set, for documents and `--help`. */
export function describeConfig(schema: TObject): Setting[] {
  return Object.entries(schema.properties).map(([name, property]) => {
    const value = fallback(property);
    return {
      name,
      env: envName(name),
      description: String((property as { description?: string }).description ?? ''),
      ...(value === undefined || isSecret(property) ? {} : { fallback: Array.isArray(value) ? value.join(',') : String(value) }),
      secret: isSecret(property),
    };
  });
}

export const envName = (name: string): string => `IRIS_${name.toUpperCase()}`;
const isSecret = (schema: TSchema): boolean => (schema as { secret?: boolean }).secret === true;
const fallback = (schema: TSchema): unknown => (schema as { default?: unknown }).default;

function fromEnv(env: Readonly<Record<string, string | undefined>>, name: string, schema: TSchema, faults: string[]): string | undefined {
  const direct = env[envName(name)] || undefined;
  const file = isSecret(schema) ? env[`${envName(name)}_FILE`] || undefined : undefined;
  if (file === undefined) return direct;
  if (direct !== undefined) {
    faults.push(`${name}: both ${envName(name)} and ${envName(name)}_FILE are given`);
    return direct;
  }
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    faults.push(`${name}: ${envName(name)}_FILE cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
    return undefined;
  }
}

/** Text that does not fit is left as it is, so that the schema's own message names the fault. */
function parse(text: string, schema: TSchema): unknown {
  switch ((schema as { type?: string }).type) {
    case 'integer':
    case 'number':
      return /^[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text.replaceAll('_', '')) : text;
    case 'boolean':
      if (/^(true|1|yes|on)$/i.test(text)) return true;
      return /^(false|0|no|off)$/i.test(text) ? false : text;
    case 'array':
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '');
    default:
      return text;
  }
}
