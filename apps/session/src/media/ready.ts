import type { Jobs } from '@iris/jobs';
import type { SessionId, TenantId } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import type { MediaRow, Store } from '@iris/store';

/** Waits until a worker has looked at a file. */
export interface MediaReady {
  /** The row as it is when it is processed, or when the time is over. A worker is asked for it, again if need be. */
  processed(row: MediaRow, within_ms: number): Promise<MediaRow | undefined>;
  /** A worker says that it is done. */
  heard(said: { readonly tenant_id: TenantId; readonly media_id: string }): void;
}

/** What a worker says may be lost. */
const poll_ms = 1_000;

export function mediaReady(deps: {
  store: Store;
  jobs: Jobs;
  clock: Clock;
  log: Log;
  session_id: SessionId;
  weightOf: (tenant_id: TenantId) => number;
}): MediaReady {
  const { store, jobs, clock, log, session_id } = deps;
  const waiting = new Map<string, Set<() => void>>();
  const keyOf = (tenant_id: TenantId, media_id: string) => `${tenant_id}\n${media_id}`;

  const pause = (key: string, ms: number): Promise<void> =>
    new Promise((resolve) => {
      const all = waiting.get(key) ?? new Set();
      waiting.set(key, all);
      const end = () => {
        timer.cancel();
        all.delete(end);
        if (all.size === 0 && waiting.get(key) === all) waiting.delete(key);
        resolve();
      };
      const timer = clock.after(ms, end);
      all.add(end);
    });

  return {
    async processed(row, within_ms) {
      if (row.processed) return row;
      const { tenant_id, media_id } = row;
      const until = clock.now() + within_ms;
      const asking = jobs.enqueue(
        'media.process',
        { tenant_id, media_id, session_id },
        { id: media_id, share: { tenant_id, weight: deps.weightOf(tenant_id) } },
      );
      asking.catch((error: unknown) => log.warn('session.media_not_asked', { media_id, error }));
      for (;;) {
        const left = until - clock.now();
        if (left > 0) await pause(keyOf(tenant_id, media_id), Math.min(poll_ms, left));
        const now = await store.media.get(tenant_id, media_id);
        if (now === undefined || now.processed || clock.now() >= until) return now;
      }
    },
    heard({ tenant_id, media_id }) {
      for (const end of [...(waiting.get(keyOf(tenant_id, media_id)) ?? [])]) end();
    },
  };
}
