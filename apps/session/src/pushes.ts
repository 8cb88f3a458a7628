import type { Jobs } from '@iris/jobs';
import type { Outbox } from '@iris/outbox';
import type { Cursor, TenantId } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import { pushNote, type Store } from '@iris/store';
import type { OutFrame } from './emission.js';
import type { Patience } from './patience.js';

/** Who is told of frames that are worth a push, and of those that make a shown notification stale. */
export interface Pushes {
  /**
   * The first step of one: that something shown may go stale is marked in the store, so that it is taken back though the queue forgets; and that
   * something worth a push comes which stands nowhere else, so that it is noted though whoever appends it is lost. Undefined when nothing is to be written.
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
/** One mark covers what comes within this time; `markedAfter_ms` of the worker is longer. */
const markFor_ms = 10_000;
const marksKept = 10_000;

/** Once per tenant and {@link markFor_ms}. */
function marks(
  clock: Clock,
  mark: (tenant_id: TenantId, now: number) => Promise<void>,
): (tenant_id: TenantId) => Promise<void> | undefined {
  const marked = new Map<TenantId, number>();
  return (tenant_id) => {
    const now = clock.now();
    if (now < (marked.get(tenant_id) ?? 0) + markFor_ms) return undefined;
    return mark(tenant_id, now).then(() => {
      if (marked.size >= marksKept) marked.clear();
      marked.set(tenant_id, now);
    });
  };
}
/** A message is owed until its note is written: it has no place in the store before. */
const isOwed = ({ alert, places }: OutFrame): boolean => alert !== undefined && places === undefined;

/** @param options.on whether the installation can push at all */
export function createPushes(
  { store, outbox, jobs, clock, log, patience }: { store: Store; outbox: Outbox; jobs: Jobs; clock: Clock; log: Log; patience: Patience },
  { on, delay_ms }: { on: boolean; delay_ms: number },
): Pushes {
  const asked = (tenant_id: TenantId, asking: Promise<void>) =>
    asking.catch((error: unknown) => log.warn('session.push_not_asked', { tenant_id, error }));
  const markStale = marks(clock, (tenant_id, now) => patience.persist(() => store.pushStale.mark(tenant_id, now), { what: 'stale' }));
  const markOwed = marks(clock, async (tenant_id, now) => {
    const [head = 0] = await patience.persist(() => outbox.heads([tenant_id]), { what: 'heads' });
    await patience.persist(() => store.pushOwed.mark(tenant_id, head, now), { what: 'owed' });
  });
  const stale = (tenant_id: TenantId, frames: readonly OutFrame[]) =>
    frames.some(({ type }) => withdrawing.has(type)) ? markStale(tenant_id) : undefined;
  return {
    before(tenant_id, frames) {
      if (!on) return undefined;
      const marking = [stale(tenant_id, frames), frames.some(isOwed) ? markOwed(tenant_id) : undefined].filter((one) => one !== undefined);
      return marking.length === 0 ? undefined : Promise.all(marking).then(() => {});
    },
    async told(tenant_id, frames) {
      if (!on) return;
      const notes = frames.flatMap(({ frame, cursor }) => pushNote(tenant_id, frame, cursor, clock.now()) ?? []);
      if (notes.length > 0) {
        await patience.persist(() => store.pushFrames.note(notes), { what: 'push' });
        const cursor = Math.max(...notes.map((one) => one.cursor));
        void asked(tenant_id, jobs.enqueue('push.check', { tenant_id, cursor }, { id: tenant_id, delay_ms }));
      }
      // It may have taken so long that the first mark is spent.
      await stale(
        tenant_id,
        frames.map(({ frame }) => frame),
      );
      if (frames.some(({ frame }) => withdrawing.has(frame.type)))
        void asked(tenant_id, jobs.enqueue('push.withdraw', { tenant_id }, { id: tenant_id, delay_ms: withdraw_ms }));
    },
  };
}
