import { laneKey, type TenantId } from '@iris/protocol';
import { lanesBefore, type PushLedgerRow } from '@iris/store';
import type { PushConfig } from './config.js';
import { goneWhy, readBy } from './decide.js';
import type { Dispatch, PushDeps } from './dispatch.js';
import { grouped, loadView } from './view.js';
import { tagOf } from './words.js';

/**
 * Takes back what is shown and stale: read elsewhere, answered, or deleted. Looks at how things are, so it may run as often as one likes; what could
 * not be said now is said when the job runs again.
 */
export async function withdraw(deps: PushDeps & { readonly dispatch: Dispatch }, config: PushConfig, tenant_id: TenantId): Promise<void> {
  const { store, clock, dispatch, meter } = deps;
  const shown = await store.pushLedger.shown(tenant_id);
  if (shown.length === 0) return;
  const frames = await store.pushFrames.get(tenant_id, [...new Set(shown.map(({ cursor }) => cursor))]);
  const view = await loadView(deps, tenant_id, frames, config.push_providers);
  const newest = newestOf(shown);
  const byDevice = grouped(shown, ({ device_id }) => device_id);
  let unheard = 0;
  const done: PushLedgerRow[] = [];
  await Promise.all(
    shown.map(async (row) => {
      const replaced = newest.get(laneOf(row)) !== row;
      const frame = view.frames.get(row.cursor);
      const reader = frame === undefined ? undefined : readBy(view, frame);
      const stale = frame === undefined || goneWhy(view, frame) !== undefined || reader !== undefined;
      if (!stale && !replaced) return;
      const target = view.targets.get(row.device_id)?.find(({ kind }) => kind === row.provider);
      // By a newer one of its lane already; the tag has seen to it, but where each push has a name of its own.
      const inPlace = replaced && row.provider !== 'ntfy';
      const here = frame !== undefined && (view.reads.get(laneKey(row))?.get(row.device_id) ?? 0) >= frame.cursor;
      if (target !== undefined && !inPlace && !here) {
        const lanes_before = lanesBefore(byDevice.get(row.device_id)!, row, view.devices.get(row.device_id)?.last_seen_at ?? 0);
        const verdict = await dispatch.through(target, (sender) =>
          sender.withdraw(target, { tag: tagOf(view, row), cursor: row.covers, lanes_before }),
        );
        meter.counter('iris_push_withdrawn_total').add(1, { provider: target.kind, outcome: verdict.is });
        if (verdict.is === 'dead') await store.pushTargets.drop(target);
        if (verdict.is === 'retry' && clock.now() < (row.sent_at ?? 0) + tried_ms) {
          unheard++;
          return;
        }
      }
      done.push(row);
    }),
  );
  await store.pushLedger.withdrawn(done, clock.now());
  if (unheard > 0) throw new Error(`${unheard} withdrawals were not taken`);
}

/** What no provider has taken back for so long after it was sent stays as it is. */
const tried_ms = 24 * 3600 * 1000;

const laneOf = (row: PushLedgerRow): string => `${row.device_id}\n${laneKey(row)}`;

function newestOf(rows: readonly PushLedgerRow[]): ReadonlyMap<string, PushLedgerRow> {
  const newest = new Map<string, PushLedgerRow>();
  for (const row of rows) if ((newest.get(laneOf(row))?.covers ?? -1) < row.covers) newest.set(laneOf(row), row);
  return newest;
}
