import type { Jobs, Working } from '@iris/jobs';
import type { WorkerConfig } from './config.js';
import { type RepairDeps, repair } from './jobs/repair.js';
import { retention } from './jobs/retention.js';

export interface WorkerDeps extends RepairDeps {
  readonly jobs: Jobs;
}

export interface Worker {
  start(): Promise<void>;
  /** Takes nothing new, finishes what runs. */
  stop(): Promise<void>;
  ready(): boolean;
}

/** Work that nobody waits for: upkeep of the outbox. Any number may run; each job runs on one of them, and may run twice. */
export function createWorker(deps: WorkerDeps, config: WorkerConfig): Worker {
  const { jobs, log, meter } = deps;
  const done = meter.counter('iris_jobs_done_total');
  let working: Working | undefined;

  const counted = (job: string, run: () => Promise<void>) => async () => {
    try {
      await run();
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
          'upkeep.retention': counted('upkeep.retention', () => retention(deps, config)),
        },
        { concurrency: config.concurrency },
      );
      await jobs.repeat('upkeep.repair', {}, config.repair_ms);
      await jobs.repeat('upkeep.retention', {}, config.retention_ms);
      log.info('worker.working');
    },
    async stop() {
      await working?.end();
      working = undefined;
    },
    ready: () => working !== undefined,
  };
}
