import type { MessageId, TenantId } from '@iris/protocol';

/** Every kind of job, and what it carries. Handlers are idempotent: a job may run twice. */
export interface JobTable {
  /** Messages in Postgres whose append is owed; found by the periodic sweep. */
  'upkeep.repair': { readonly tenant_id?: TenantId };
  /** Outbox retention. */
  'upkeep.retention': Record<string, never>;
  /** A frame worth a push: who has not confirmed it gets one. */
  'push.check': { readonly tenant_id: TenantId; readonly cursor: number; readonly message_id?: MessageId };
}
export type JobName = keyof JobTable;

/** Work for later, done at least once by one of the workers. Guarantees nothing about order. */
export interface Jobs {
  /**
   * @param options.delay_ms not before
   * @param options.id the same id again, while the first waits, changes nothing
   */
  enqueue<N extends JobName>(name: N, data: JobTable[N], options?: { delay_ms?: number; id?: string }): Promise<void>;
  /** Run it every `every_ms` on one worker of all, however many ask. */
  repeat<N extends JobName>(name: N, data: JobTable[N], every_ms: number): Promise<void>;
  /** Handlers may throw: the job is tried again with growing pauses, `attempts` times in all. */
  work(handlers: { [N in JobName]?: (data: JobTable[N]) => Promise<void> }, options: { concurrency: number }): Promise<Working>;
  close(): Promise<void>;
}

export interface Working {
  /** Takes nothing new, finishes what runs. */
  end(): Promise<void>;
}
