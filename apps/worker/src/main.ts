import { natsBus } from '@iris/bus';
import { bullmqJobs } from '@iris/jobs';
import { openMedia } from '@iris/media';
import { redisOutbox } from '@iris/outbox';
import { loadConfig, runPart } from '@iris/runtime';
import { migrate, prismaStore } from '@iris/store';
import { findCinema } from './media/cinema.js';
import { cinemaLimits, processStudio, studioLimits } from './media/studio.js';
import { WorkerProcessConfig } from './process-config.js';
import { createWorker } from './worker.js';

const config = loadConfig(WorkerProcessConfig);

await runPart('worker', config, async ({ instance, life, health, clock, random, log, meter }) => {
  // Its upkeep begins at once, and must not meet the tables of another version.
  await life.start('migrations', () => migrate(config.postgres_url, log));
  const store = await life.start(
    'store',
    () => prismaStore({ url: config.postgres_url, poolSize: config.postgres_pool, clock, log }),
    (one) => one.close(),
  );
  const outbox = await life.start(
    'outbox',
    () => redisOutbox({ url: config.redis_url, name: instance, clock, random, log }),
    (one) => one.close(),
  );
  const bus = await life.start(
    'bus',
    () => natsBus({ servers: config.nats_url, name: instance, clock, random, log, meter }),
    (one) => one.close(),
  );
  const jobs = await life.start(
    'jobs',
    () => bullmqJobs({ url: config.redis_url, clock, random, log }),
    (one) => one.close(),
  );
  const media = await life.start(
    'media',
    () => openMedia(config),
    (one) => one.close(),
  );
  const studio = processStudio({ clock, log, limits: studioLimits(config), seats: config.media_at_once });
  const cinema = await findCinema({ clock, log, limits: cinemaLimits(config), ...(config.spill_dir ? { folder: config.spill_dir } : {}) });
  const worker = await life.start(
    'worker',
    async () => {
      const one = createWorker(
        { bus, outbox, store, media, studio, ...(cinema ? { cinema } : {}), jobs, clock, random, log, meter },
        config,
      );
      await one.start();
      return one;
    },
    (one) => one.stop(),
  );
  health.check('worker', () => worker.ready() && bus.connected && outbox.connected);
});
