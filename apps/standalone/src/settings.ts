import { AgentConfig } from '@iris/agent';
import { ControlConfig } from '@iris/control';
import { EdgeConfig } from '@iris/edge';
import { envName, loadConfig, parseSets } from '@iris/runtime';
import { SessionConfig } from '@iris/session';
import { WorkerConfig } from '@iris/worker';
import { type Static, type TObject, Type } from 'typebox';

/** `--set`s, checked against everything that can be set. */
export interface Settings {
  /** The part's configuration: its defaults, the environment, then the `--set`s. */
  of<S extends TObject>(schema: S, more?: ReadonlyMap<string, string>): Readonly<Static<S>>;
  /** The same for a process of its own. */
  readonly env: Readonly<Record<string, string>>;
}

/** What the start itself is told. */
export const StandaloneConfig = Type.Object({
  log_level: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], {
    default: 'info',
    description: 'least severe log line that is written',
  }),
});

const parts: readonly TObject[] = [EdgeConfig, SessionConfig, WorkerConfig, StandaloneConfig];
const schemas: readonly TObject[] = [...parts, ControlConfig, AgentConfig];

/**
 * @param words `name=value`
 * @throws ConfigError that names every one that does not exist or has a wrong value
 */
export function settings(words: readonly string[]): Settings {
  const set = parseSets(words);
  const of: Settings['of'] = (schema, more) => loadConfig(schema, { set: new Map([...set, ...(more ?? [])]), beside: schemas });
  // Here, so that a slip is told before anything is started. The others want values that are not there yet.
  for (const schema of parts) of(schema);
  return { of, env: Object.fromEntries([...set].map(([name, value]) => [envName(name), value])) };
}
