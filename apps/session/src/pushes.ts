import type { Jobs } from '@iris/jobs';
import type { Cursor, TenantId } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import { pushNote, type Store } from '@iris/store';
import type { OutFrame } from './emission.js';
import type { Patience } from './patience.js';

/** Who is told of frames that are worth a push, and of those that make a shown notification stale. */
export interface Pushes {
  /**
   * The first step of one: that something shown may go stale is marked in the store, so that it is taken back though the queue forgets. Undefined when
   * nothing is to be written.
   */
  before(tenant_id: TenantId, frames: readonly OutFrame[]): Promise<void> | undefined;
  /**
   * The last step of an emission. That a frame is worth a push is written down before the emission counts as done, so that no crash and no
   * loss of the queue can lose it; that somebody looks soon is asked of the queue, and found by the upkeep when the queue forgot.
   */
  told(tenant_id: TenantId, frames: readonly { frame: OutFrame; cursor: Cursor }[]): Promise<void>;
}

/** Frames after which a notification may have to go. */
const withdrawing: ReadonlySet<string> = new Set(['read.receipt', 'message.deleted', 'picker.closed', 'channel.deleted']);
const withdraw_ms = 300;
/** One mark covers what comes within this time; {@link staleAfter_ms} of the worker is longer. */
const markFor_ms = 10_000;
const marksKept = 10_000;

/** @param options.on whether the installation can push at all */
export function createPushes(
  { store, jobs, clock, log, patience }: { store: Store; jobs: Jobs; clock: Clock; log: Log; patience: Patience },
  { on, delay_ms }: { on: boolean; delay_ms: number },
): Pushes {
  const asked = (tenant_id: TenantId, asking: Promise<void>) =>
    asking.catch((error: unknown) => log.warn('session.push_not_asked', { tenant_id, error }));
  const marked = new Map<TenantId, number>();
  const before: Pushes['before'] = (tenant_id, frames) => {
    const now = clock.now();
    if (!on || now < (marked.get(tenant_id) ?? 0) + markFor_ms || !frames.some(({ type }) => withdrawing.has(type))) return undefined;
    return patience
      .persist(() => store.pushStale.mark(tenant_id, now), { what: 'stale' })
      .then(() => {
        if (marked.size >= marksKept) marked.clear();
        marked.set(tenant_id, now);
      });
  };
  return {
    before,
    async told(tenant_id, frames) {
      if (!on) return;
      const notes = frames.flatMap(({ frame, cursor }) => pushNote(tenant_id, frame, cursor, clock.now()) ?? []);
      if (notes.length > 0) {
        await patience.persist(() => store.pushFrames.note(notes), { what: 'push' });
        const cursor = Math.max(...notes.map((one) => one.cursor));
        void asked(tenant_id, jobs.enqueue('push.check', { tenant_id, cursor }, { id: tenant_id, delay_ms }));
      }
      // It may have taken so long that the first mark is spent.
      await before(
        tenant_id,
        frames.map(({ frame }) => frame),
      );
      if (frames.some(({ frame }) => withdrawing.has(frame.type)))
        void asked(tenant_id, jobs.enqueue('push.withdraw', { tenant_id }, { id: tenant_id, delay_ms: withdraw_ms }));
    },
  };
}
