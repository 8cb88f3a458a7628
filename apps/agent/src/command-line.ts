import { type ConfigSource, loadConfig } from '@iris/runtime';
import { Command, CommanderError, Option } from 'commander';
import { AgentConfig } from './config.js';
import type { BackendName } from './start-agent.js';

/** What a command line asks for: a run, or a text and an exit code. */
export type Asked =
  | { readonly kind: 'run'; readonly backend: BackendName; readonly config: Readonly<AgentConfig> }
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
    .option('--openai <url>', 'any OpenAI-compatible endpoint (not available yet)')
    .option('--hermes <url>', "a Hermes agent's API server (not available yet)")
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
  for (const name of ['openai', 'hermes'] as const) if (flags[name] !== undefined) return fail(`--${name} is not available yet; --demo is`);
  if (!flags.demo) return fail('no backend given: --demo');
  const set = new Map<string, string>();
  for (const [name, value] of [
    ['gateway_url', flags.gateway],
    ['agent_token', flags.token],
    ['agent_name', flags.name],
    ['spool_dir', flags.spool],
    ['pace_ms', flags.pace],
    ['log_level', flags.logLevel],
  ] as const)
    if (value !== undefined) set.set(name, value);
  try {
    return { kind: 'run', backend: 'demo', config: loadConfig(AgentConfig, { env, set }) };
  } catch (error) {
    return fail((error as Error).message);
  }
}
