import type { TenantId } from '@iris/protocol';
import { type Clock, type FairLine, fairLine, type Log, silentLog, systemClock, type Timer } from '@iris/runtime';
import {
  attempts,
  firstRetry_ms as defaultFirstRetry_ms,
  type JobName,
  type Jobs,
  JobsUnavailable,
  type JobTable,
  type Share,
  type Working,
} from './jobs.js';

type Handler = (data: JobTable[JobName]) => Promise<void>;

interface Job {
  readonly name: JobName;
  readonly data: JobTable[JobName];
  readonly id?: string | undefined;
  readonly repeated?: true;
  readonly share?: Share | undefined;
  tries: number;
}

/** Due. */
interface Ready {
  readonly plain: Job[];
  readonly shared: FairLine<TenantId, Job>;
}

interface Worker {
  readonly handlers: Map<JobName, Handler>;
  /** Of one tenant at once, of each kind. */
  readonly most: number;
  readonly free: Map<JobName, number>;
  /** What runs, and the job that it is. */
  readonly running: Map<Promise<void>, Job>;
}

/** One of several processes on a queue. */
export interface MemoryJobsHandle extends Jobs {
  /** The process is killed: what it was doing is taken up by another, once it is missed. */
  die(): void;
}

/** How long a job of a dead worker is not missed. */
const missed_ms = 15_000;

/** The queue of one process or, through {@link connect}, of several. */
export interface MemoryJobs extends Jobs {
  /** Another handle on the same queue; closing it ends only what it works. */
  connect(): MemoryJobsHandle;
  /** Jobs that wait, delayed ones and retries included; repeats are not counted. */
  readonly waiting: number;
  /** As a server that comes back empty: what waits is gone, and rhythms are soon kept again by those who keep them. */
  forgetEverything(): void;
}

export interface MemoryJobsOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  readonly firstRetry_ms?: number;
}

export function memoryJobs({
  clock = systemClock,
  log = silentLog,
  firstRetry_ms = defaultFirstRetry_ms,
}: MemoryJobsOptions = {}): MemoryJobs {
  const ready = new Map<JobName, Ready>();
  /** Not due yet. */
  const delayed = new Map<Job, Timer>();
  /** `name id` of jobs that have not started. */
  const waitingIds = new Set<string>();
  const repeats = new Map<JobName, { timer: Timer; every_ms: number; data: JobTable[JobName] }>();
  const workers = new Set<Worker>();

  const idOf = (job: Job) => `${job.name} ${job.id}`;

  const due = (job: Job) => {
    const queue = ready.get(job.name) ?? { plain: [], shared: fairLine() };
    ready.set(job.name, queue);
    if (job.share === undefined) queue.plain.push(job);
    else queue.shared.push(job.share.tenant_id, { weight: job.share.weight, cost: 1 }, job);
    clock.soon(() => start(job.name));
  };
  const delay = (job: Job, ms: number) => {
    const timer = clock.after(ms, () => {
      delayed.delete(job);
      due(job);
    });
    delayed.set(job, timer);
  };
  /** Of a tenant that may have one more here. */
  const nextFor = (worker: Worker, name: JobName, line: FairLine<TenantId, Job>): Job | undefined => {
    const has = new Map<TenantId, number>();
    for (const job of worker.running.values())
      if (job.name === name && job.share !== undefined) has.set(job.share.tenant_id, (has.get(job.share.tenant_id) ?? 0) + 1);
    const full = [...has].filter(([, count]) => count >= worker.most).map(([tenant_id]) => tenant_id);
    for (const tenant_id of full) line.hold(tenant_id);
    const job = line.next();
    for (const tenant_id of full) line.release(tenant_id);
    return job;
  };
  const start = (name: JobName) => {
    for (const worker of workers) {
      const handler = worker.handlers.get(name);
      while (handler !== undefined && (worker.free.get(name) ?? 0) > 0) {
        const queue = ready.get(name);
        const job = queue?.plain.shift() ?? (queue && nextFor(worker, name, queue.shared));
        if (job === undefined) break;
        worker.free.set(name, worker.free.get(name)! - 1);
        // A second try does not hold the id: another may wait under it by now.
        if (job.tries === 0) waitingIds.delete(idOf(job));
        const run = attempt(job, handler).then(() => {
          worker.running.delete(run);
          worker.free.set(name, worker.free.get(name)! + 1);
          start(name);
        });
        worker.running.set(run, job);
      }
    }
  };
  const attempt = async (job: Job, handler: Handler) => {
    job.tries++;
    try {
      await handler(structuredClone(job.data));
    } catch (error) {
      const last = job.tries >= attempts;
      log[last ? 'error' : 'warn']('jobs.failed', { job: job.name, tries: job.tries, error });
      if (!last) delay(job, firstRetry_ms * 2 ** (job.tries - 1));
    }
  };

  const connect = (): MemoryJobsHandle => {
    const own = new Set<Working>();
    const ownWorkers = new Set<Worker>();
    let closed = false;
    return {
      async enqueue(name, data, { delay_ms = 0, id, share } = {}) {
        if (closed) throw new JobsUnavailable('closed');
        const job: Job = { name, data: structuredClone(data), id, share, tries: 0 };
        if (id !== undefined) {
          if (waitingIds.has(idOf(job))) return;
          waitingIds.add(idOf(job));
        }
        if (delay_ms > 0) delay(job, delay_ms);
        else due(job);
      },
      async repeat(name, data, every_ms) {
        if (closed) throw new JobsUnavailable('closed');
        const before = repeats.get(name);
        const kept = structuredClone(data);
        if (before?.every_ms === every_ms) {
          before.data = kept;
          return;
        }
        before?.timer.cancel();
        const one = {
          every_ms,
          data: kept,
          timer: clock.every(every_ms, () => {
            // As with the real queue: one that is still waiting is not doubled.
            if (!ready.get(name)?.plain.some((job) => job.repeated)) due({ name, data: one.data, repeated: true, tries: 0 });
          }),
        };
        repeats.set(name, one);
      },
      async work(handlers, { concurrency, most = concurrency }) {
        if (closed) throw new JobsUnavailable('closed');
        const table = new Map(Object.entries(handlers) as [JobName, Handler][]);
        const worker: Worker = { handlers: table, most, free: new Map(), running: new Map() };
        ownWorkers.add(worker);
        for (const name of table.keys()) worker.free.set(name, concurrency);
        workers.add(worker);
        for (const name of table.keys()) clock.soon(() => start(name));
        const working = {
          async end() {
            workers.delete(worker);
            own.delete(working);
            await Promise.all(worker.running.keys());
          },
        };
        own.add(working);
        return working;
      },
      async close() {
        closed = true;
        await Promise.all([...own].map((working) => working.end()));
      },
      die() {
        closed = true;
        for (const worker of ownWorkers) {
          workers.delete(worker);
          for (const job of worker.running.values()) delay(job, missed_ms);
        }
      },
    };
  };

  const root = connect();
  return {
    ...root,
    connect,
    forgetEverything() {
      for (const timer of delayed.values()) timer.cancel();
      delayed.clear();
      ready.clear();
      waitingIds.clear();
    },
    get waiting() {
      let count = delayed.size;
      for (const { plain, shared } of ready.values()) count += plain.length + shared.size;
      return count;
    },
    async close() {
      await root.close();
      for (const { timer } of repeats.values()) timer.cancel();
      repeats.clear();
      for (const timer of delayed.values()) timer.cancel();
      delayed.clear();
      ready.clear();
      waitingIds.clear();
    },
  };
}
