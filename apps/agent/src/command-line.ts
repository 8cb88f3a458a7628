import { type ConfigSource, loadConfig } from '@iris/runtime';
import { Command, CommanderError, Option } from 'commander';
import { Type } from 'typebox';
import { AgentConfig } from './config.js';
import { type BackendName, backends } from './start-agent.js';

/** What a command line asks for: a run, or a text and an exit code. */
export type Asked =
  | { readonly kind: 'run'; readonly backend: BackendName; readonly url?: string; readonly config: Readonly<AgentConfig> }
  /** Agents of many tenants, who name their own endpoints. */
  | { readonly kind: 'tenants'; readonly file: string; readonly config: Readonly<Omit<AgentConfig, 'agent_token'>> }
  | { readonly kind: 'exit'; readonly code: number; readonly text: string };

interface Flags {
  readonly gateway?: string;
  readonly token?: string;
  readonly name?: string;
  readonly spool?: string;
  readonly pace?: string;
  readonly logLevel?: string;
  readonly demo?: true;
  readonly openai?: string;
  readonly hermes?: string;
  readonly tenants?: string;
  readonly key?: string;
  readonly model?: string;
  readonly system?: string;
  readonly context?: string;
  /** Only `false` is ever given: by `--no-private`. */
  readonly private: boolean;
  readonly allowHost?: readonly string[];
  readonly allowAddress?: readonly string[];
}

/** Flags go before the environment. Never throws. @param argv without the program's name */
export function commandLine(argv: readonly string[], env: NonNullable<ConfigSource['env']>): Asked {
  let text = '';
  const fail = (why: string): Asked => ({ kind: 'exit', code: 2, text: `iris-agent: ${why}\n` });
  const command = new Command('iris-agent')
    .description('Attach an agent to an Iris Gateway.')
    .option('--gateway <url>', 'wss://<gateway>/agent (or IRIS_GATEWAY_URL)')
    .option('--token <token>', "the agent's token (or IRIS_AGENT_TOKEN, IRIS_AGENT_TOKEN_FILE: not seen by others on the machine)")
    .option('--demo', 'a scripted agent that needs no model and shows everything the gateway can carry')
    .option('--openai <url>', 'any OpenAI-compatible endpoint: http://localhost:11434/v1')
    .option('--hermes <url>', "a Hermes agent's API server: http://localhost:8642")
    .option('--tenants <file>', "agents of many tenants: a JSON list with each one's token and endpoint, read again when it changes")
    .option('--key <key>', "the endpoint's key (or IRIS_AGENT_KEY, IRIS_AGENT_KEY_FILE: not seen by others on the machine)")
    .option('--model <model>', 'the model; default: the first that the endpoint names')
    .option('--system <text>', 'what the model is told before everything else')
    .option('--context <tokens>', 'tokens that the model holds; default: what the endpoint says')
    .option('--no-private', 'the endpoint may not be on this machine or in a private network')
    .option('--allow-host <host...>', 'the endpoint, and what it redirects to, must be on one of these (*.example.com: all below it)')
    .option('--allow-address <range...>', 'private addresses that are allowed even so (10.1.0.0/16)')
    .option('--spool <dir>', 'a folder of its own: what was said survives a restart (or IRIS_SPOOL_DIR)')
    .option('--name <name>', "what the gateway calls it; default: the backend's name")
    .option('--pace <ms>', 'milliseconds between two chunks of a demo answer (30)')
    .addOption(
      new Option('--log-level <level>', 'least severe log line that is written').choices(['debug', 'info', 'warn', 'error', 'silent']),
    )
    .exitOverride()
    .configureOutput({
      writeOut: (more) => {
        text += more;
      },
      writeErr: () => {},
    });
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? { kind: 'exit', code: 0, text } : fail(error.message.replace(/^error: /, ''));
  }
  const flags = command.opts<Flags>();
  if (flags.tenants !== undefined) return manyTenants(flags, flags.tenants, env, fail);
  const wanted = backends.filter((one) => flags[one] !== undefined);
  const [name, second] = wanted;
  if (name === undefined) return fail(`no backend given: ${backends.map((one) => `--${one}`).join(' or ')}`);
  if (second !== undefined) return fail(`--${name} and --${second}: one of them, please`);
  const url = flags[name] === true ? undefined : flags[name];
  if (url !== undefined && !/^https?:\/\/./.test(url)) return fail(`--${name} ${url}: an address that begins with http:// or https://`);
  const set = settingsOf(flags);
  try {
    return { kind: 'run', backend: name, ...(url === undefined ? {} : { url }), config: loadConfig(AgentConfig, { env, set }) };
  } catch (error) {
    return fail((error as Error).message);
  }
}

/** What flags say, by the names of the configuration. */
function settingsOf(flags: Flags): Map<string, string> {
  const set = new Map<string, string>();
  for (const [name, value] of [
    ['gateway_url', flags.gateway],
    ['agent_token', flags.token],
    ['agent_name', flags.name],
    ['spool_dir', flags.spool],
    ['pace_ms', flags.pace],
    ['log_level', flags.logLevel],
    ['agent_key', flags.key],
    ['agent_model', flags.model],
    ['system_prompt', flags.system],
    ['context_tokens', flags.context],
    ['private_addresses', flags.private ? undefined : 'false'],
    ['allow_hosts', flags.allowHost?.join(',')],
    ['allow_addresses', flags.allowAddress?.join(',')],
  ] as const)
    if (value !== undefined) set.set(name, value);
  return set;
}

/** What is said of one agent has no place beside a list of many; and where tenants name addresses, private ones are not asked unless that is said. */
function manyTenants(flags: Flags, file: string, env: NonNullable<ConfigSource['env']>, fail: (why: string) => Asked): Asked {
  const own = ['token', 'demo', 'openai', 'hermes', 'key', 'model', 'system', 'context', 'name'] as const;
  const misplaced = own.find((name) => flags[name] !== undefined);
  if (misplaced !== undefined) return fail(`--${misplaced} and --tenants: it stands in the file, for each of them`);
  const set = settingsOf(flags);
  if (env.IRIS_PRIVATE_ADDRESSES === undefined) set.set('private_addresses', 'false');
  try {
    const { agent_token: _, ...properties } = AgentConfig.properties;
    return { kind: 'tenants', file, config: loadConfig(Type.Object(properties), { env, set }) };
  } catch (error) {
    return fail((error as Error).message);
  }
}
