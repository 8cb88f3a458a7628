import { readFileSync } from 'node:fs';
import { natsBus } from '@iris/bus';
import { loadConfig, runPart, sealing } from '@iris/runtime';
import { prismaStore } from '@iris/store';
import { startAgents } from './agents.js';
import { AgentsProcessConfig } from './agents-config.js';
import type { DevTenant } from './dev-json.js';

/** One process for the agents that the gateway runs itself; `iris-agent` attaches one from elsewhere. */
const config = loadConfig(AgentsProcessConfig);

await runPart('agent', config, async ({ instance, life, health, clock, random, log, meter }) => {
  const { gateway_url: gateway, spool_dir, pace_ms, sealing_secret, agent_url: url, agent_key: key } = config;
  const store = await life.start(
    'store',
    () => prismaStore({ url: config.postgres_url, poolSize: 2, clock, log }),
    (one) => one.close(),
  );
  const bus = await life.start(
    'bus',
    () => natsBus({ servers: config.nats_url, name: instance, clock, random, log, meter }),
    (one) => one.close(),
  );
  const agents = await life.start(
    'agents',
    () =>
      startAgents({
        gateway,
        spool_dir,
        store,
        bus,
        seal: sealing_secret.length === 0 ? undefined : sealing(sealing_secret, random),
        own: { backend: config.agent_backend, ...(url === undefined ? {} : { url }), ...(key === undefined ? {} : { key }) },
        // Where the operator's own is, is the operator's matter.
        model: { ...config, private_addresses: true, allow_hosts: [], allow_addresses: [] },
        reach: config,
        pace_ms,
        clock,
        log,
      }),
    (one) => one.stop(),
  );
  if (config.tenants_file !== undefined) await agents.attach(JSON.parse(readFileSync(config.tenants_file, 'utf8')) as DevTenant[]);
  health.check('links', () => agents.attached);
});
