import { type Bus, durableRecords, packBatches, subjects } from '@iris/bus';
import type { Jobs } from '@iris/jobs';
import type { Outbox } from '@iris/outbox';
import { durableMessage, type MessageId, type TenantId } from '@iris/protocol';
import type { Clock, Log, Meter } from '@iris/runtime';
import { type MessageRow, pushNote, type Store } from '@iris/store';
import { quotasOf, type WorkerConfig } from '../config.js';

const page = 500;

export interface RepairDeps {
  readonly bus: Bus;
  readonly outbox: Outbox;
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * Messages that Postgres has and the outbox has not, because a process died between the two: appended under the key that the emitter uses,
 * so that a message which did get there (only its place was not written back) is not there twice.
 */
export async function repair({ bus, outbox, store, jobs, clock, log, meter }: RepairDeps, config: WorkerConfig): Promise<void> {
  const rows = await store.messages.owed({ before_ts: clock.now() - config.owed_after_ms, limit: page });
  const tenant_ids = new Set(rows.map(({ tenant_id }) => tenant_id));
  for (const tenant_id of tenant_ids)
    await repairTenant(
      tenant_id,
      rows.filter((row) => row.tenant_id === tenant_id),
    );

  async function repairTenant(tenant_id: TenantId, owed: readonly MessageRow[]): Promise<void> {
    const tenant = await store.tenants.get(tenant_id);
    if (tenant === undefined) return;
    const deletedOf = (all: readonly MessageRow[]) =>
      store.messages.deleted(
        tenant_id,
        all.map(({ message_id }) => message_id),
      );
    const before = await deletedOf(owed);
    const messages = owed.filter(({ message_id }) => !before.has(message_id));
    const frames = messages.map(durableMessage);
    const batch = { tenant_id, frames, max_frames: quotasOf(config, tenant.quotas).outbox_max_frames };
    for (;;) {
      const [appended] = await outbox.append([batch]);
      if (appended === undefined) return;
      if (appended.refused === 'exhausted') {
        const block = await store.tenants.reserveCursors(tenant_id, config.cursor_block);
        if (block === undefined) return;
        await outbox.extend(tenant_id, block.to);
        continue;
      }
      if (appended.refused === 'unseeded') {
        // A session instance seeds, since it must also ask the tenant's agents what is going on: it will, when the tenant is next heard of.
        log.debug('worker.repair_waits', { tenant_id, messages: messages.length });
        return;
      }
      if (appended.refused !== undefined) throw new Error(`the outbox refused: ${appended.refused}`);
      // Deleted while this appended: the frame goes before any device hears of it.
      const since = await deletedOf(messages);
      if (since.size > 0) await outbox.forget(tenant_id, { message_ids: [...since] });
      // That it is worth a push was to be written down behind its append: who died between the two did not.
      const notes = frames.flatMap((frame, i) => pushNote(tenant_id, frame, appended.cursors[i]!, clock.now()) ?? []);
      if (config.push_providers.length > 0 && notes.length > 0) {
        await store.pushFrames.note(notes);
        await jobs.enqueue('push.check', { tenant_id, cursor: notes.at(-1)!.cursor }, { id: tenant_id, delay_ms: 0 });
      }
      const records = durableRecords(tenant_id, frames, appended).filter(({ message_id }) => !since.has(message_id as MessageId));
      for (const edge_id of appended.edges) for (const message of packBatches(records)) bus.publish(subjects.edge(edge_id), message);
      await store.messages.setCursors(messages.map(({ message_id }, i) => ({ tenant_id, message_id, cursor: appended.cursors[i]! })));
      meter.counter('iris_worker_repaired_total').add(records.length);
      log.warn('worker.repaired', { tenant_id, placed: messages.length, appended: records.length });
      return;
    }
  }
}
