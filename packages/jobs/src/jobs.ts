import type { MediaId, SessionId, TenantId } from '@iris/protocol';

/** Every kind of job, and what it carries. Handlers are idempotent: a job may run twice. */
export interface JobTable {
  /** Messages in Postgres whose append is owed; found by the periodic sweep. */
  'upkeep.repair': { readonly tenant_id?: TenantId };
  /** Outbox retention. */
  'upkeep.retention': Record<string, never>;
  /** Idempotency keys, and what else is kept only so that nothing happens twice. */
  'upkeep.keys': Record<string, never>;
  /** Frames of a tenant are worth a push: who has not confirmed them gets one. */
  'push.check': { readonly tenant_id: TenantId; readonly cursor: number };
  /** Something of a tenant was read, answered or deleted: notifications that say it go. */
  'push.withdraw': { readonly tenant_id: TenantId };
  /** Pushes to be tried again, and whatever the queue forgot. */
  'push.sweep': Record<string, never>;
  /** A file was uploaded: what is it? The session instance that waits for the answer is told. */
  'media.process': { readonly tenant_id: TenantId; readonly media_id: MediaId; readonly session_id?: SessionId };
  /** Files that nothing names any more. */
  'media.clean': Record<string, never>;
}
export type JobName = keyof JobTable;

/** How often a job is tried in all. */
export const attempts = 5;
/** Milliseconds before the second try; each further pause is twice as long. */
export const firstRetry_ms = 1_000;

export interface Share {
  readonly tenant_id: TenantId;
  /** Above 0. */
  readonly weight: number;
}

/**
 * Work for later, done at least once by one of the workers. Guarantees nothing about order. Each kind has a queue of its own,
 * so that a kind that is slow or failing holds up no other.
 */
export interface Jobs {
  /**
   * Rejects with {@link JobsUnavailable} within about two seconds when the queue cannot be reached.
   * @param options.delay_ms not before
   * @param options.id the same id again, while the first waits, changes nothing; once the first runs it is a new job
   * @param options.share whose it is: when more of this kind waits than workers can do, tenants take turns by their weights, however much
   * each has asked for. Jobs of nobody come first.
   */
  enqueue<N extends JobName>(name: N, data: JobTable[N], options?: { delay_ms?: number; id?: string; share?: Share }): Promise<void>;
  /**
   * Run it every `every_ms` on one worker of all, however many ask. One rhythm per name: the last asked for counts.
   * The first run is at most `every_ms` away. Kept up while this stays open, also when the queue loses its data.
   */
  repeat<N extends JobName>(name: N, data: JobTable[N], every_ms: number): Promise<void>;
  /**
   * Handlers may throw: the job is tried again with growing pauses, {@link attempts} times in all.
   * @param options.concurrency how many of each kind run at once here
   * @param options.most how many of these may be one tenant's, of jobs that say whose they are; default: all. Others do not wait behind what a tenant
   * has above that, however long its jobs take.
   */
  work(
    handlers: { [N in JobName]?: (data: JobTable[N]) => Promise<void> },
    options: { concurrency: number; most?: number },
  ): Promise<Working>;
  /** Ends all work started here as {@link Working.end} does. */
  close(): Promise<void>;
}

export interface Working {
  /** Takes nothing new, finishes what runs. */
  end(): Promise<void>;
}

/** The queue cannot be reached. Whether the job was taken is unknown. */
export class JobsUnavailable extends Error {
  override readonly name = 'JobsUnavailable';
}
