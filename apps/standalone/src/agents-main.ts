import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentConfig, backends, ModelSettings, startAgent } from '@iris/agent';
import { loadConfig, PartConfig, runPart } from '@iris/runtime';
import { Type } from 'typebox';
import type { DevTenant } from './dev-json.js';

/** One process for the agents of all tenants; `iris-agent` attaches one. */
const config = loadConfig(
  Type.Object({
    ...PartConfig.properties,
    gateway_url: AgentConfig.properties.gateway_url,
    pace_ms: AgentConfig.properties.pace_ms,
    agent_backend: Type.Enum([...backends], { default: 'demo', description: 'what thinks behind the link' }),
    agent_url: Type.Optional(Type.String({ minLength: 1, description: 'where its model is; everything but demo needs it' })),
    agent_key: AgentConfig.properties.agent_key,
    ...ModelSettings,
    spool_dir: Type.String({ minLength: 1, description: 'a folder with one of its own for each agent' }),
    tenants_file: Type.String({ minLength: 1, description: 'JSON list of tenants with the tokens of their agents' }),
  }),
);
const tenants = JSON.parse(readFileSync(config.tenants_file, 'utf8')) as DevTenant[];

await runPart('agent', config, async ({ life, health, clock, log }) => {
  const { gateway_url: gateway, pace_ms, agent_backend: backend, agent_url: url, agent_key: key } = config;
  const model = { ...(url === undefined ? {} : { url }), ...(key === undefined ? {} : { key }), model: config };
  const agents = await life.start(
    'agents',
    () =>
      tenants.map(({ agent_id, agent_token: token }) =>
        startAgent({ gateway, token, backend, ...model, pace_ms, spool: join(config.spool_dir, agent_id), clock, log }),
      ),
    (all) => Promise.all(all.map((one) => one.stop())),
  );
  health.check('links', () => agents.every(({ online }) => online));
});
