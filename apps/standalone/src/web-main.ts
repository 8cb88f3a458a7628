import { loadConfig, pinoLog, runProcess, serveHealth, systemClock } from '@iris/runtime';
import { startWeb } from '@iris/web';
import { WebConfig } from './web-config.js';

const config = loadConfig(WebConfig);
const clock = systemClock;
const log = pinoLog({ level: config.log_level, clock, fields: { part: 'web' } });

await runProcess({ log, clock, stop_ms: 5_000 }, async (life) => {
  const health = await life.start(
    'health',
    () => serveHealth({ host: config.health_host, port: config.health_port, clock }),
    (one) => one.close(),
  );
  await life.start(
    'web',
    () => startWeb({ host: config.web_host, port: config.web_port }),
    (one) => one.close(),
  );
  health.setReady(true);
});
