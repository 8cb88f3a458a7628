import { natsBus } from '@iris/bus';
import { bullmqJobs } from '@iris/jobs';
import { redisOutbox } from '@iris/outbox';
import type { SessionId } from '@iris/protocol';
import { collectRarely, loadConfig, runPart } from '@iris/runtime';
import { migrate, prismaStore } from '@iris/store';
import { SessionProcessConfig } from './process-config.js';
import { createSession } from './session.js';

const config = loadConfig(SessionProcessConfig);
collectRarely();

await runPart('session', config, async ({ instance, life, health, clock, random, log, meter }) => {
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
  const jobs = await life.start(
    'jobs',
    () => bullmqJobs({ url: config.redis_url, clock, random, log }),
    (one) => one.close(),
  );
  const bus = await life.start(
    'bus',
    () => natsBus({ servers: config.nats_url, name: instance, clock, random, log, meter }),
    (one) => one.close(),
  );
  const session = await life.start(
    'session',
    async () => {
      const one = createSession({ bus, outbox, store, jobs, clock, log, meter, random, session_id: instance as SessionId }, config);
      await one.start();
      return one;
    },
    (one) => one.stop({ within_ms: config.finish_ms }),
  );
  health.check('session', () => session.ready());
});
