import { parseArgs } from 'node:util';
import type { BackendName } from '@iris/agent';

/** Written out: what is only read here shall not load the agent. */
export const agentKinds = ['demo', 'openai', 'hermes', 'none'] as const satisfies readonly (BackendName | 'none')[];
export type AgentKind = (typeof agentKinds)[number];

/** What `npm start -- …` was asked for. */
export interface Options {
  readonly cluster: boolean;
  readonly edges: number;
  readonly sessions: number;
  readonly workers: number;
  readonly agent: AgentKind;
  readonly agent_url?: string;
  readonly agent_key?: string;
  /** Of the first edge; the others follow. */
  readonly port: number;
  readonly data: string;
  readonly fresh: boolean;
  /** Words `name=value`. */
  readonly set: readonly string[];
  readonly web: boolean;
  readonly tenants: number;
  readonly restart: boolean;
  readonly install: boolean;
}

export const usage = `npm start -- [options]

  --cluster            several processes on real Postgres, Redis, NATS and S3
  --edges N            how many of each, with --cluster (default 2)
  --sessions N         (default 2)
  --workers N          (default 1)
  --agent KIND         demo, openai, hermes or none (default demo)
  --agent-url URL      where the agent's model is, for openai and hermes
  --agent-key KEY      its key
  --port P             the first edge's port; the others follow (default 8080)
  --data DIR           where data and dev.json live (default .iris)
  --fresh              forget the data first
  --set NAME=VALUE     any configuration value, also several times
  --tenants N          how many tenants (default 1)
  --no-web             without the web client
  --no-restart         a part that dies stays dead
  --install            missing servers may be installed by the package manager, also when not root
`;

/** A wish that cannot be fulfilled; the message is one line for the person who typed it. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
}

/** @throws OptionError */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  let values: ReturnType<typeof parse>['values'];
  const parse = () =>
    parseArgs({
      args: [...args],
      allowPositionals: false,
      options: {
        cluster: flag,
        edges: text,
        sessions: text,
        workers: text,
        agent: { ...text, default: 'demo' },
        'agent-url': text,
        'agent-key': text,
        port: { ...text, default: '8080' },
        data: { ...text, default: '.iris' },
        fresh: flag,
        set: { ...text, multiple: true, default: [] },
        'no-web': flag,
        tenants: { ...text, default: '1' },
        'no-restart': flag,
        install: flag,
        help: flag,
      },
    });
  try {
    values = parse().values;
  } catch (error) {
    throw new OptionError((error as Error).message);
  }
  if (values.help) return 'help';
  const cluster = values.cluster ?? false;
  for (const name of ['edges', 'sessions', 'workers'] as const) {
    if (!cluster && values[name] !== undefined) throw new OptionError(`--${name} goes with --cluster`);
  }
  const agent = agentKinds.find((kind) => kind === values.agent);
  if (agent === undefined) throw new OptionError(`--agent ${values.agent}: ${agentKinds.join(', ')}`);
  const attached = agent === 'openai' || agent === 'hermes';
  if (attached && values['agent-url'] === undefined) throw new OptionError(`--agent ${agent} needs --agent-url`);
  if (attached && !isWebAddress(values['agent-url'])) {
    throw new OptionError('--agent-url: an address that begins with http:// or https://, without a name or a password in it');
  }
  if (!attached && (values['agent-url'] ?? values['agent-key']) !== undefined) {
    throw new OptionError('--agent-url and --agent-key go with --agent openai or hermes');
  }
  return {
    cluster,
    edges: whole('edges', values.edges ?? '2', 1, 100),
    sessions: whole('sessions', values.sessions ?? '2', 1, 100),
    workers: whole('workers', values.workers ?? '1', 0, 100),
    agent,
    ...(values['agent-url'] === undefined ? {} : { agent_url: values['agent-url'] }),
    ...(values['agent-key'] === undefined ? {} : { agent_key: values['agent-key'] }),
    port: whole('port', values.port ?? '', 1, 65_000),
    data: values.data ?? '.iris',
    fresh: values.fresh ?? false,
    set: values.set ?? [],
    web: !values['no-web'],
    tenants: whole('tenants', values.tenants ?? '', 1, 10_000),
    restart: !values['no-restart'],
    install: values.install ?? false,
  };
}

/** Which agent is attached, and where its model is. Not for `none`. */
export const agentOf = ({ agent, agent_url, agent_key }: Pick<Options, 'agent' | 'agent_url' | 'agent_key'>) => ({
  backend: agent as BackendName,
  ...(agent_url === undefined ? {} : { url: agent_url }),
  ...(agent_key === undefined ? {} : { key: agent_key }),
});

function isWebAddress(text = ''): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

function whole(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) throw new OptionError(`--${name} ${text}: a whole number from ${min} to ${max}`);
  return value;
}
