import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentConfig, startAgent } from '@iris/agent';
import { loadConfig, pinoLog, runProcess, serveHealth, systemClock } from '@iris/runtime';
import { Type } from 'typebox';
import type { DevTenant } from './dev-json.js';

/** One process for the demo agents of all tenants: `iris-agent` attaches one. */
const config = loadConfig(
  Type.Object({
    gateway_url: AgentConfig.properties.gateway_url,
    pace_ms: AgentConfig.properties.pace_ms,
    log_level: AgentConfig.properties.log_level,
    spool_dir: Type.String({ minLength: 1, description: 'a folder with one of its own for each agent' }),
    tenants_file: Type.String({ minLength: 1, description: 'JSON list of tenants with their agents’ tokens' }),
    health_host: Type.String({ default: '127.0.0.1', description: 'address of /healthz, /readyz and /metrics' }),
    health_port: Type.Integer({ default: 0, minimum: 0, maximum: 65_535, description: 'their port; 0 takes a free one' }),
  }),
);
const clock = systemClock;
const log = pinoLog({ level: config.log_level, clock, fields: { part: 'agent' } });
const tenants = JSON.parse(readFileSync(config.tenants_file, 'utf8')) as DevTenant[];

await runProcess({ log, clock, stop_ms: 10_000 }, async (life) => {
  const health = await life.start(
    'health',
    () => serveHealth({ host: config.health_host, port: config.health_port, clock }),
    (one) => one.close(),
  );
  const { gateway_url: gateway, pace_ms } = config;
  const agents = await life.start(
    'agents',
    () =>
      tenants.map(({ agent_id, agent_token: token }) =>
        startAgent({ gateway, token, backend: 'demo', pace_ms, spool: join(config.spool_dir, agent_id), clock, log }),
      ),
    (all) => Promise.all(all.map((one) => one.stop())),
  );
  health.check('links', () => agents.every(({ online }) => online));
  health.setReady(true);
});
