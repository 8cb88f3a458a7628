import type { Working } from '@iris/jobs';
import type { MediaStore } from '@iris/media';
import type { Random } from '@iris/runtime';
import type { WorkerConfig } from './config.js';
import { createKeyExpiry } from './jobs/keys.js';
import { type RepairDeps, repair } from './jobs/repair.js';
import { retention } from './jobs/retention.js';
import type { Cinema } from './media/cinema.js';
import { cleanMedia } from './media/clean.js';
import { processMedia } from './media/process.js';
import type { Studio } from './media/studio.js';
import { createPusher } from './push/pusher.js';
import type { Http } from './senders/http.js';

export interface WorkerDeps extends RepairDeps {
  readonly random: Random;
  /** The bytes of files. */
  readonly media: MediaStore;
  /** Decodes pictures. Absent: they are sniffed and cleaned, and have neither dimensions nor a preview. */
  readonly studio?: Studio;
  /** Looks into films. Absent: they have no preview. */
  readonly cinema?: Cinema;
  /** Default: on sockets. */
  readonly http?: Http;
}

export interface Worker {
  start(): Promise<void>;
  /** Takes nothing new, finishes what runs. */
  stop(): Promise<void>;
  ready(): boolean;
}

/** Work off the way of frames: what uploaded files are, pushes, and upkeep of the outbox. Any number may run; each job runs on one of them, and may run twice. */
export function createWorker(deps: WorkerDeps, config: WorkerConfig): Worker {
  const { jobs, log, meter } = deps;
  const done = meter.counter('iris_jobs_done_total');
  let working: Working | undefined;
  let pushing: Working | undefined;
  let looking: Working | undefined;

  const pusher = createPusher(deps, config);
  const expireKeys = createKeyExpiry(deps, config);

  const counted =
    <D>(job: string, run: (data: D) => Promise<void>) =>
    async (data: D) => {
      try {
        await run(data);
        done.add(1, { job, outcome: 'ok' });
      } catch (error) {
        done.add(1, { job, outcome: 'failed' });
        log.warn('worker.job_failed', { job, error });
        throw error;
      }
    };

  return {
    async start() {
      working = await jobs.work(
        {
          'upkeep.repair': counted('upkeep.repair', () => repair(deps, config)),
          'upkeep.keys': counted('upkeep.keys', expireKeys),
          'upkeep.retention': counted('upkeep.retention', () => retention(deps, config)),
        },
        { concurrency: config.concurrency },
      );
      pushing = await jobs.work(
        {
          'push.check': counted('push.check', ({ tenant_id }) => pusher.check(tenant_id)),
          'push.withdraw': counted('push.withdraw', ({ tenant_id }) => pusher.withdraw(tenant_id)),
          'push.sweep': counted('push.sweep', () => pusher.sweep()),
        },
        { concurrency: config.push_checks },
      );
      looking = await jobs.work(
        {
          'media.process': counted('media.process', (job) => processMedia(job, { ...deps, config })),
          'media.clean': counted('media.clean', () => cleanMedia(deps, config)),
        },
        // To look at a file may take long: a place is kept for whoever comes meanwhile.
        { concurrency: config.media_at_once, most: Math.max(1, config.media_at_once - 1) },
      );
      await jobs.repeat('media.clean', {}, config.media_clean_ms);
      if (config.push_providers.length > 0) await jobs.repeat('push.sweep', {}, config.push_sweep_ms);
      await jobs.repeat('upkeep.repair', {}, config.repair_ms);
      await jobs.repeat('upkeep.keys', {}, config.keys_ms);
      await jobs.repeat('upkeep.retention', {}, config.retention_ms);
      log.info('worker.working');
    },
    async stop() {
      await Promise.all([working?.end(), pushing?.end(), looking?.end()]);
      await deps.studio?.close();
      await pusher.stop();
      working = undefined;
    },
    ready: () => working !== undefined,
  };
}
