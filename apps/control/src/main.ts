import { natsBus } from '@iris/bus';
import { loadConfig, runPart } from '@iris/runtime';
import { migrate, prismaStore } from '@iris/store';
import { buildApi } from './api.js';
import { ControlProcessConfig } from './config.js';

const config = loadConfig(ControlProcessConfig);

await runPart('control', config, async ({ instance, life, health, clock, random, log }) => {
  await life.start('migrations', () => migrate(config.postgres_url, log));
  const store = await life.start(
    'store',
    () => prismaStore({ url: config.postgres_url, clock, log }),
    (one) => one.close(),
  );
  const bus = await life.start(
    'bus',
    () => natsBus({ servers: config.nats_url, name: instance, clock, random, log }),
    (one) => one.close(),
  );
  await life.start(
    'api',
    async () => {
      const api = await buildApi({ store, bus, clock, random, log }, config);
      await api.listen({ host: config.control_host, port: config.control_port });
      return api;
    },
    (one) => one.close(),
  );
  health.check('store', () => store.ready());
  health.check('bus', () => bus.connected);
});
