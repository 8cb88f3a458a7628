import { AgentConfig, backends, ModelSettings } from '@iris/agent';
import { PartConfig, ReachConfig, SealingSecret } from '@iris/runtime';
import { Type } from 'typebox';

/** What the runner of the cluster is told: the agents that the gateway runs itself. */
export const AgentsProcessConfig = Type.Object({
  ...PartConfig.properties,
  gateway_url: AgentConfig.properties.gateway_url,
  postgres_url: Type.String({ minLength: 1, secret: true, description: 'postgresql://user:password@host:port/database' }),
  nats_url: Type.Array(Type.String(), { minItems: 1, secret: true, description: 'nats://host:port, several with commas' }),
  sealing_secret: SealingSecret,
  pace_ms: AgentConfig.properties.pace_ms,
  ...ModelSettings,
  ...ReachConfig,
  spool_dir: Type.String({ minLength: 1, description: 'a folder with one of its own for each agent' }),
  agent_backend: Type.Enum([...backends], { default: 'demo', description: 'what thinks behind the agents of tenants_file' }),
  agent_url: Type.Optional(Type.String({ minLength: 1, description: 'where its model is; everything but demo needs it' })),
  agent_key: AgentConfig.properties.agent_key,
  tenants_file: Type.Optional(
    Type.String({ minLength: 1, description: 'JSON list of tenants with the tokens of agents that are run besides those in the store' }),
  ),
});
