import { natsBus } from '@iris/bus';
import { loadConfig, measureProcess, pinoLog, runProcess, serveHealth, systemClock, systemRandom, telemetry } from '@iris/runtime';
import { migrate, prismaStore } from '@iris/store';
import { buildApi } from './api.js';
import { ControlProcessConfig } from './config.js';

const config = loadConfig(ControlProcessConfig);
const clock = systemClock;
const random = systemRandom;
const log = pinoLog({ level: config.log_level, clock, fields: { part: 'control' } });

await runProcess({ log, clock, stop_ms: config.stop_ms }, async (life) => {
  const measured = await life.start(
    'telemetry',
    () => telemetry({ service: 'control', instance: 'control' }),
    (one) => one.close(),
  );
  await life.start(
    'measures',
    () => measureProcess({ meter: measured.meter, clock }),
    (end) => end(),
  );
  const health = await life.start(
    'health',
    () => serveHealth({ host: config.health_host, port: config.health_port, clock, metrics: () => measured.scrape() }),
    (one) => one.close(),
  );
  await life.start('migrations', () => migrate(config.postgres_url, log));
  const store = await life.start(
    'store',
    () => prismaStore({ url: config.postgres_url, clock, log }),
    (one) => one.close(),
  );
  const bus = await life.start(
    'bus',
    () => natsBus({ servers: config.nats_url, name: 'control', clock, random, log }),
    (one) => one.close(),
  );
  const api = await life.start(
    'api',
    () => buildApi({ store, bus, clock, random, log }, config),
    (one) => one.close(),
  );
  await api.listen({ host: config.control_host, port: config.control_port });
  health.check('store', () => store.ready());
  health.check('bus', () => bus.connected);
  health.setReady(true);
});
