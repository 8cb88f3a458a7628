import { natsBus } from '@iris/bus';
import { openMedia } from '@iris/media';
import { redisOutbox } from '@iris/outbox';
import { loadConfig, runPart } from '@iris/runtime';
import { migrate, postgresArchive, prismaStore } from '@iris/store';
import { buildApi } from './api.js';
import { ControlProcessConfig } from './config.js';

const config = loadConfig(ControlProcessConfig);

await runPart('control', config, async ({ instance, life, health, clock, random, log, meter }) => {
  const { postgres_url, redis_url, s3_url, media_dir } = config;
  await life.start('migrations', () => migrate(config.migrate_url ?? postgres_url, log));
  const store = await life.start(
    'store',
    () => prismaStore({ url: postgres_url, clock, log }),
    (one) => one.close(),
  );
  const archive = await life.start(
    'archive',
    () => postgresArchive({ url: postgres_url, clock, log }),
    (one) => one.close(),
  );
  const bus = await life.start(
    'bus',
    () => natsBus({ servers: config.nats_url, name: instance, clock, random, log, meter }),
    (one) => one.close(),
  );
  const outbox =
    redis_url === undefined
      ? undefined
      : await life.start(
          'outbox',
          () => redisOutbox({ url: redis_url, log }),
          (one) => one.close(),
        );
  const media =
    !s3_url && !media_dir
      ? undefined
      : await life.start(
          'media',
          () => openMedia(config),
          (one) => one.close(),
        );
  await life.start(
    'api',
    async () => {
      const api = await buildApi(
        { store, bus, clock, random, log, archive, ...(outbox === undefined ? {} : { outbox }), ...(media === undefined ? {} : { media }) },
        config,
      );
      await api.listen({ host: config.control_host, port: config.control_port });
      return api;
    },
    (one) => one.close(),
  );
  health.check('store', () => store.ready());
  health.check('bus', () => bus.connected);
});
