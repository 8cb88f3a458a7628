import type { LinkEnd } from '@iris/agent-link';
import { pinoLog, runProcess, systemClock } from '@iris/runtime';
import { commandLine } from './command-line.js';
import { startAgent } from './start-agent.js';

const refused: Record<Exclude<LinkEnd['reason'], 'stopped'>, string> = {
  auth: 'the gateway refused the token',
  revoked: 'the token was revoked',
  replaced: 'another process attached as this agent and took over',
};

const asked = commandLine(process.argv.slice(2), process.env);
if (asked.kind === 'exit') {
  (asked.code === 0 ? process.stdout : process.stderr).write(asked.text);
  process.exitCode = asked.code;
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
