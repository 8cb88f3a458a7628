import type { Jobs } from '@iris/jobs';
import type { TenantId } from '@iris/protocol';
import type { PushLedgerRow } from '@iris/store';
import type { PushConfig } from './config.js';
import { type Decision, decide, ledgerRows } from './decide.js';
import type { Dispatch, PushDeps } from './dispatch.js';
import { loadView } from './view.js';

export interface CheckDeps extends PushDeps {
  readonly jobs: Jobs;
  readonly dispatch: Dispatch;
  /** Milliseconds on the clock before which nothing is decided: the outbox has just come back, and edges are still telling it who is there. */
  readonly settled_at: () => number;
}

/** How long a tenant's outbox may be without its place before what Postgres knows has to do. */
const unseeded_ms = 15_000;
/** Whoever decides sends; a push that nobody has sent for so long is taken up by the sweep. */
const own_ms = 10_000;
const again_ms = 1_000;

/** Decides, for each device of a tenant, about each frame that nobody has decided about yet, and has sent what is to be sent. */
export async function check(deps: CheckDeps, config: PushConfig, tenant_id: TenantId): Promise<void> {
  const { store, clock, dispatch, meter } = deps;
  const undecided = await store.pushFrames.undecided(tenant_id);
  const [oldest] = undecided;
  if (oldest === undefined) return;
  if (clock.now() < deps.settled_at()) return later(deps, tenant_id, oldest.cursor, again_ms);
  const view = await loadView(deps, tenant_id, undecided, config.push_providers);
  if (view.unsettled && clock.now() < oldest.at + unseeded_ms) return later(deps, tenant_id, oldest.cursor, again_ms);

  const now = clock.now();
  const cursors = undecided.map(({ cursor }) => cursor);
  const known = new Set((await store.pushLedger.keysOf(tenant_id, cursors)).map(({ device_id, cursor }) => `${cursor}\n${device_id}`));
  const patience = { live_ms: config.push_live_ms, age_ms: config.push_age_ms };
  const rows: PushLedgerRow[] = [];
  const waiting = new Map<number, number>();
  for (const device of view.devices.values()) {
    const decisions: (readonly [(typeof undecided)[number], Decision])[] = [];
    for (const frame of undecided) {
      if (known.has(`${frame.cursor}\n${device.device_id}`)) continue;
      const decision = decide(view, frame, device, now, patience);
      if (decision.is === 'wait') waiting.set(frame.cursor, Math.max(decision.until, waiting.get(frame.cursor) ?? 0));
      decisions.push([frame, decision]);
    }
    rows.push(...ledgerRows(view, device, decisions, now, now + own_ms));
  }
  const won = new Set((await store.pushLedger.decide(rows)).map(({ device_id, cursor }) => `${cursor}\n${device_id}`));
  const ours = rows.filter(({ device_id, cursor }) => won.has(`${cursor}\n${device_id}`));
  const decided = meter.counter('iris_push_decided_total');
  for (const { state, why } of ours) decided.add(1, { decision: state === 'skipped' ? (why ?? '') : state });
  // Two who decide at once may each have a part: what was to go with a push that is not ours goes by itself.
  for (const { device_id, with_cursor } of ours)
    if (with_cursor !== null && !won.has(`${with_cursor}\n${device_id}`))
      await store.pushLedger.release({ tenant_id, device_id, cursor: with_cursor }, now);
  dispatch.offer(
    view,
    ours.flatMap((row) => (row.state === 'pending' ? [{ row, frame: view.frames.get(row.cursor)! }] : [])),
  );
  await store.pushFrames.decided(
    tenant_id,
    cursors.filter((cursor) => !waiting.has(cursor)),
  );
  await keepMarks(deps, view);
  if (waiting.size > 0) await later(deps, tenant_id, oldest.cursor, Math.max(50, Math.min(...waiting.values()) - clock.now() + 10));
}

/** Under a name of its own: a frame that comes meanwhile is looked at in its own time, not in this one's. */
const later = ({ jobs }: CheckDeps, tenant_id: TenantId, cursor: number, delay_ms: number): Promise<void> =>
  jobs.enqueue('push.check', { tenant_id, cursor }, { id: `${tenant_id} again`, delay_ms });

/** How far devices have come is the outbox's to know; what it would lose with its data is kept where it is looked at anyway. */
async function keepMarks({ store }: CheckDeps, { tenant_id, devices, standing }: Awaited<ReturnType<typeof loadView>>): Promise<void> {
  const moved = [...devices.values()].flatMap(({ device_id, watermark }) => {
    const cursor = standing.get(device_id)?.watermark ?? 0;
    return cursor > watermark ? [{ tenant_id, device_id, cursor, at: 0 }] : [];
  });
  await store.devices.confirm(moved);
}
