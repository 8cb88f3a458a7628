import { type Clock, type Log, type Random, silentLog, systemClock, systemRandom } from '@iris/runtime';
import { type Job, type JobsOptions, Queue, Worker } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import { inPlaces } from './in-places.js';
import {
  attempts,
  firstRetry_ms as defaultFirstRetry_ms,
  type JobName,
  type Jobs,
  JobsUnavailable,
  type JobTable,
  type Working,
} from './jobs.js';
import { shareTurns } from './share-turns.js';

export interface BullmqJobsOptions {
  /** `redis://` or `rediss://`, with user, password and database as usual. */
  readonly url: string;
  /** In front of every key. The braces put all queues into one slot of a Redis Cluster, which the scripts need. */
  readonly prefix?: string;
  readonly firstRetry_ms?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

type Data = JobTable[JobName];
type Handler = (data: Data) => Promise<void>;

const patience_ms = 2_000;
/** A job whose worker died is taken up by another within lock and check together. */
const lock_ms = 15_000;
const stalledCheck_ms = 10_000;
/** A worker waits for jobs at most 10 s at a time: a socket that says nothing for longer is dead. */
const workerSilence_ms = 15_000;
const repeatCheck_ms = 60_000;

/** The queues in Redis, by BullMQ. Resolves at once; what is asked waits for the connection, {@link patience_ms} at most. */
export function bullmqJobs({
  url,
  prefix = '{bull}',
  firstRetry_ms = defaultFirstRetry_ms,
  clock = systemClock,
  random = systemRandom,
  log = silentLog,
}: BullmqJobsOptions): Jobs {
  let closed = false;
  const pause = (tries: number) => Math.min(1_000, 50 * 2 ** tries) * (0.5 + random.unit());
  const newClient = (options: Omit<RedisOptions, 'replyMapping'>): Redis => {
    const client = new Redis(url, { ...options, connectTimeout: patience_ms, disconnectTimeout: 500, connectionName: 'iris-jobs' });
    client.on('error', (error) => log.warn('jobs.connection', { error }));
    return client;
  };
  /** For asking: nothing is kept while the server is away, and nothing is waited for longer than said. */
  const asking = newClient({
    retryStrategy: (tries) => (closed ? null : pause(tries)),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: patience_ms,
    socketTimeout: 3_000,
  });
  const turns = shareTurns(asking, prefix);
  const queues = new Map<JobName, Queue>();
  const repeats = new Map<JobName, { data: Data; every_ms: number }>();
  const workings = new Set<Working>();
  const jobOptions: JobsOptions = {
    attempts,
    backoff: { type: 'exponential', delay: firstRetry_ms },
    removeOnComplete: { count: 100 },
    removeOnFail: { count: 1_000, age: 7 * 24 * 60 * 60 },
  };
  const queueOf = (name: JobName): Queue => {
    let queue = queues.get(name);
    if (queue === undefined) {
      queue = new Queue(name, { connection: asking, prefix, defaultJobOptions: jobOptions });
      queue.on('error', (error) => log.warn('jobs.queue', { job: name, error }));
      queues.set(name, queue);
      // One whose first words to the server were lost stays useless for ever.
      queue.waitUntilReady().catch(() => queues.delete(name));
    }
    return queue;
  };
  /** Those that wait for the connection. */
  const waiting = new Set<() => void>();
  const reached = async (): Promise<void> => {
    const until = clock.now() + patience_ms;
    // Between the two lies a moment in which the other side has hung up and this one has not been told.
    while (asking.status !== 'ready' || !asking.stream.writable) {
      if (closed || clock.now() >= until) throw new JobsUnavailable('cannot be reached');
      await new Promise<void>((resolve) => {
        const go = () => {
          timer.cancel();
          waiting.delete(go);
          resolve();
        };
        const timer = clock.after(until - clock.now(), go);
        waiting.add(go);
      });
    }
  };
  const ask = async <R>(what: string, send: () => Promise<R>): Promise<R> => {
    if (closed) throw new JobsUnavailable(`${what}: closed`);
    try {
      return await within(clock, reached().then(send));
    } catch (error) {
      throw error instanceof JobsUnavailable ? error : new JobsUnavailable(`${what}: ${String(error)}`, { cause: error });
    }
  };
  const keepRepeating = (name: JobName, { data, every_ms }: { data: Data; every_ms: number }) =>
    ask(`repeat ${name}`, () => queueOf(name).upsertJobScheduler(name, { every: every_ms }, { name, data, opts: jobOptions }));
  /** A server that came back may have come back empty, and a rhythm that is forgotten would never be noticed. */
  const keepAllRepeating = () => {
    for (const [name, repeat] of repeats)
      keepRepeating(name, repeat).catch((error) => !closed && log.warn('jobs.repeat', { job: name, error }));
  };
  asking.on('ready', () => {
    for (const go of [...waiting]) go();
    keepAllRepeating();
  });
  const repeatCheck = clock.every(repeatCheck_ms, keepAllRepeating);

  return {
    async enqueue(name, data, { delay_ms = 0, id, share } = {}) {
      const options = { delay: delay_ms, ...(id === undefined ? {} : { deduplication: { id } }) };
      await ask(`enqueue ${name}`, async () => {
        const priority = share === undefined ? undefined : await turns.place(name, share);
        return queueOf(name).add(name, data, priority === undefined ? options : { ...options, priority });
      });
    },
    async repeat(name, data, every_ms) {
      const repeat = { data, every_ms };
      await keepRepeating(name, repeat);
      repeats.set(name, repeat);
    },
    async work(handlers, { concurrency, most = concurrency }) {
      if (closed) throw new JobsUnavailable('work: closed');
      let leaving = false;
      const client = newClient({
        retryStrategy: (tries) => (leaving ? null : pause(tries)),
        maxRetriesPerRequest: null,
        socketTimeout: workerSilence_ms,
      });
      /** BullMQ makes itself a second connection for each kind, to wait on. */
      const sockets = [client];
      client.duplicate = (override) => {
        const copy = Redis.prototype.duplicate.call(client, override);
        copy.on('error', (error) => log.warn('jobs.connection', { error }));
        sockets.push(copy);
        return copy;
      };
      const running = new Set<Promise<void>>();
      const workers = (Object.entries(handlers) as [JobName, Handler][]).map(([name, handler]) => {
        const run = (job: Job<Data>) => {
          turns.reached(name, job.opts.priority).catch((error: unknown) => log.debug('jobs.turn', { job: name, error }));
          const done = handle(job, handler).finally(() => running.delete(done));
          running.add(done);
          return done;
        };
        const worker = new Worker<Data>(
          name,
          inPlaces(
            most,
            () => queueOf(name),
            run,
            () => leaving,
            clock,
          ),
          {
            connection: client,
            prefix,
            concurrency,
            lockDuration: lock_ms,
            stalledInterval: stalledCheck_ms,
            maxStalledCount: attempts,
            runRetryDelay: 1_000,
          },
        );
        worker.on('error', (error) => {
          log.warn('jobs.worker', { job: name, error });
          // A connection that could not be made before it was given up answers every question with the same error, at once: the worker would ask
          // for ever without a turn of the loop, and nothing else of this process would run any more. This takes effect before it asks again.
          if (leaving) void worker.close(true);
        });
        worker.on('failed', (job, error) => {
          const tries = job?.attemptsMade ?? 0;
          log[tries >= attempts ? 'error' : 'warn']('jobs.failed', { job: name, tries, error });
        });
        return worker;
      });
      let ending: Promise<void> | undefined;
      const end = async () => {
        workings.delete(working);
        // From here on a connection that breaks is not made anew; one that is just being made is waited for, since a worker that is
        // closed meanwhile never comes to its end.
        leaving = true;
        await within(clock, Promise.all(sockets.map(settled))).catch(() => {});
        const closing = Promise.all(workers.map((worker) => worker.close()));
        // Nothing new is taken now. What runs is waited for, however long; but when the server is away, saying that it is done
        // would wait for ever: then another worker does it again.
        await Promise.allSettled([...running]);
        await within(clock, closing).catch(() => {});
        for (const socket of sockets) socket.disconnect();
      };
      const working: Working = {
        end() {
          ending ??= end();
          return ending;
        },
      };
      workings.add(working);
      return working;
    },
    async close() {
      if (closed) return;
      closed = true;
      repeatCheck.cancel();
      for (const go of [...waiting]) go();
      await Promise.all([...workings].map((working) => working.end()));
      asking.disconnect();
    },
  };
}

/** Resolves when it is connected, or will not be any more. */
const settled = (socket: Redis): Promise<void> =>
  new Promise((resolve) => {
    if (socket.status !== 'reconnecting') return resolve();
    for (const status of ['ready', 'end']) socket.once(status, resolve);
  });

/** From here on the same id is a new job: what happens now may not be seen by this run any more. */
async function handle(job: Job<Data>, handler: Handler): Promise<void> {
  await job.removeDeduplicationKey();
  await handler(job.data);
}

async function within<R>(clock: Clock, work: Promise<R>): Promise<R> {
  let timer: { cancel(): void } | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = clock.after(patience_ms, () => reject(new JobsUnavailable('no answer')));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer?.cancel();
  }
}
