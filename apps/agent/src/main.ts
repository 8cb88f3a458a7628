import { readFileSync } from 'node:fs';
import type { LinkEnd } from '@iris/agent-link';
import { pinoLog, runProcess, systemClock } from '@iris/runtime';
import { commandLine } from './command-line.js';
import { startAgent } from './start-agent.js';
import { createTenantAgents, tenantAgents } from './tenants.js';

const refused: Record<Exclude<LinkEnd['reason'], 'stopped'>, string> = {
  auth: 'the gateway refused the token',
  revoked: 'the token was revoked',
  replaced: 'another process attached as this agent and took over',
};

/** How often the list of tenants is looked at, and how often it is tried again with those that could not be served. */
const look_ms = 2_000;
const again_ms = 30_000;

const asked = commandLine(process.argv.slice(2), process.env);
if (asked.kind === 'exit') {
  (asked.code === 0 ? process.stdout : process.stderr).write(asked.text);
  process.exitCode = asked.code;
} else if (asked.kind === 'tenants') {
  const { config, file } = asked;
  const clock = systemClock;
  const log = pinoLog({ level: config.log_level, clock, fields: { part: 'agent' } });
  await runProcess({ log, clock, stop_ms: config.stop_ms }, async (life) => {
    const { gateway_url: gateway, spool_dir } = config;
    const more = spool_dir === undefined ? {} : { spool_dir };
    const agents = await life.start(
      'agents',
      async () => {
        const all = createTenantAgents({ gateway, model: config, clock, log, ...more });
        let known = readFileSync(file, 'utf8');
        let served_at = clock.now();
        await all.serve(tenantAgents(known));
        const looking = clock.every(look_ms, () => {
          try {
            const now = readFileSync(file, 'utf8');
            if (now === known && clock.now() - served_at < again_ms) return;
            known = now;
            served_at = clock.now();
            void all.serve(tenantAgents(now));
          } catch (error) {
            // What was served before is served on.
            log.error('agent.tenants_unreadable', { file, error });
          }
        });
        return { all, looking };
      },
      async ({ all, looking }) => {
        looking.cancel();
        await all.stop();
      },
    );
    log.info('agent.serving', { agents: agents.all.size });
  });
} else {
  const { backend, config, url } = asked;
  const clock = systemClock;
  const log = pinoLog({ level: config.log_level, clock, fields: { part: 'agent' } });
  await runProcess({ log, clock, stop_ms: config.stop_ms }, async (life) => {
    const agent = await life.start(
      'agent',
      () =>
        startAgent({
          gateway: config.gateway_url,
          token: config.agent_token,
          backend,
          pace_ms: config.pace_ms,
          model: config,
          ...(url === undefined ? {} : { url }),
          ...(config.agent_key === undefined ? {} : { key: config.agent_key }),
          log,
          clock,
          ...(config.agent_name === undefined ? {} : { name: config.agent_name }),
          ...(config.spool_dir === undefined ? {} : { spool: config.spool_dir }),
        }),
      (one) => one.stop(),
    );
    void agent.stopped.then((end) => {
      if (end.reason === 'stopped') return;
      process.stderr.write(`iris-agent: ${refused[end.reason]}\n`);
      process.exitCode = 1;
      void life.stop();
    });
  });
}
