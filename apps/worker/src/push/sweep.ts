import { type Cursor, laneKey, type TenantId } from '@iris/protocol';
import type { PushLedgerRow } from '@iris/store';
import { type CheckDeps, check } from './check.js';
import type { PushConfig } from './config.js';
import { noteOwed } from './owed.js';
import { loadView } from './view.js';
import { withdraw } from './withdraw.js';

/** Rows at a time. */
const page = 1_000;
/** Milliseconds past its last look after which a frame should have been decided about: the queue has lost its job. */
const overdue_ms = 4_000;
/** Milliseconds after which a mark of a session instance is looked into, whatever the queue did; longer than the mark is good for there. */
const markedAfter_ms = 15_000;
/** What could not be taken back is tried again about this long after. */
const again_ms = 60_000;
const tenantsMax = 200;
const tenantsAtOnce = 3;

export interface SweepDeps extends CheckDeps {
  /** Tenants whose stale notifications a sweep of this worker is taking back. */
  readonly withdrawing: Set<TenantId>;
  /** Whether the queue may have been lost since this was asked last. */
  readonly bereaved: () => boolean;
}

/** Pushes whose time has come again, those whose worker died, and frames that nobody was asked to look at. */
export async function sweep(deps: SweepDeps, config: PushConfig): Promise<void> {
  const { store, clock, log, dispatch, withdrawing } = deps;
  if (clock.now() < deps.settled_at()) return;
  const failed = (tenant_id: TenantId) => (error: unknown) => log.warn('worker.push_sweep_failed', { tenant_id, error });
  if (dispatch.size < page) {
    const due = await store.pushLedger.due(clock.now(), page);
    await some([...new Set(due.map((row) => row.tenant_id))], async (tenant_id) => {
      const rows = due.filter((row) => row.tenant_id === tenant_id);
      await resume(deps, config, tenant_id, rows).catch(failed(tenant_id));
    });
  }
  const owing = await store.pushOwed.due(clock.now() - markedAfter_ms, tenantsMax);
  await some(owing, async (mark) => {
    try {
      if ((await noteOwed(deps, mark)) > 0) await check(deps, config, mark.tenant_id);
      await store.pushOwed.clear(mark);
    } catch (error) {
      failed(mark.tenant_id)(error);
    }
  });
  const overdue = await store.pushFrames.overdue(clock.now() - config.push_live_ms - overdue_ms, tenantsMax);
  await some(overdue, (tenant_id) => check(deps, config, tenant_id).catch(failed(tenant_id)));
  const ripe = clock.now() - markedAfter_ms;
  // Where the queue was lost its withdrawals were: nobody else will take back what went stale just before.
  const stale = await store.pushStale.due(deps.bereaved() ? clock.now() : ripe, tenantsMax);
  // A provider that does not answer holds up one sweep for long; those that begin meanwhile must not ask it for the same again.
  const fresh = stale.filter(({ tenant_id }) => !withdrawing.has(tenant_id));
  for (const { tenant_id } of fresh) withdrawing.add(tenant_id);
  await some(fresh, async ({ tenant_id, at }) => {
    try {
      await withdraw(deps, config, tenant_id);
      // A younger mark stands for what its session has still to say.
      if (at <= ripe) await store.pushStale.clear(tenant_id, at);
    } catch (error) {
      failed(tenant_id)(error);
      await store.pushStale.mark(tenant_id, clock.now() + again_ms - markedAfter_ms);
    } finally {
      withdrawing.delete(tenant_id);
    }
  }).finally(() => {
    for (const { tenant_id } of fresh) withdrawing.delete(tenant_id);
  });
}

/** All of them, a few at a time. */
async function some<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const one = async () => {
    for (const item of left) await run(item);
  };
  await Promise.all(Array.from({ length: tenantsAtOnce }, one));
}

const laneOf = (row: PushLedgerRow): string => `${row.device_id}\n${laneKey(row)}`;

/** By device and lane, how far what a device shows has got. */
function newestShown(rows: readonly PushLedgerRow[]): ReadonlyMap<string, Cursor> {
  const newest = new Map<string, Cursor>();
  for (const row of rows) newest.set(laneOf(row), Math.max(row.covers, newest.get(laneOf(row)) ?? 0));
  return newest;
}

async function resume(deps: CheckDeps, config: PushConfig, tenant_id: TenantId, due: readonly PushLedgerRow[]): Promise<void> {
  const { store, clock, dispatch } = deps;
  const now = clock.now();
  const lapsed = config.push_repeat_unknown ? [] : due.filter(({ state }) => state === 'sending');
  // Whether the provider has them nobody knows: so they were told, and are not asked again.
  await store.pushLedger.record(
    lapsed.map((row) => ({ ...row, state: 'failed', why: 'its worker died while sending', attempted: true, due_at: 0, at: now })),
  );
  const shown = newestShown(await store.pushLedger.shown(tenant_id));
  // A late one must not take the place of what came after it; a question waits for its answer all the same.
  const late = due.filter((row) => row.class !== 'picker' && (shown.get(laneOf(row)) ?? 0) > row.covers);
  await store.pushLedger.record(
    late.map((row) => ({ ...row, state: 'skipped', why: 'a newer push of its lane', attempted: false, due_at: 0, at: now })),
  );
  const rows = due.filter((row) => !lapsed.includes(row) && !late.includes(row));
  const cursors = [...new Set(rows.flatMap(({ cursor }) => [cursor - 1, cursor]))];
  const view = await loadView(deps, tenant_id, await store.pushFrames.get(tenant_id, cursors), config.push_providers);
  const gone = rows.filter(({ cursor }) => !view.frames.has(cursor));
  await store.pushLedger.record(gone.map((row) => ({ ...row, state: 'skipped', why: 'deleted', attempted: false, due_at: 0, at: now })));
  for (const row of gone) await store.pushLedger.release(row, now);
  dispatch.offer(
    view,
    rows.flatMap((row) => {
      const frame = view.frames.get(row.cursor);
      return frame === undefined ? [] : [{ row, frame }];
    }),
  );
}
