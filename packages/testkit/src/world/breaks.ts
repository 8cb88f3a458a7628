import type { Outbox } from '@iris/outbox';
import type { Store } from '@iris/store';
import type { Part } from './backbone.js';
import type { Break } from './faults.js';

let unique = 0;

/** The outbox with promises broken on purpose. */
export function brokenOutbox(outbox: Outbox, breaks: ReadonlySet<Break>, part: Part): Outbox {
  const broken: Outbox = { ...outbox };
  if (breaks.has('forget_keys'))
    broken.append = (batches) =>
      outbox.append(batches.map((batch) => ({ ...batch, frames: batch.frames.map(({ key: _, ...frame }) => frame) })));
  if (breaks.has('double_idle'))
    broken.append = async (batches) => {
      const results = await outbox.append(batches);
      for (const batch of batches) {
        const idles = batch.frames.filter(({ type }) => type === 'agent.idle').map(({ key: _, ...frame }) => frame);
        if (idles.length > 0) await outbox.append([{ ...batch, frames: idles }]);
      }
      return results;
    };
  if (breaks.has('hide_gaps'))
    broken.append = async (batches) =>
      (await outbox.append(batches)).map((result) => (result.refused === undefined ? { ...result, previous: 0 } : result));
  if (breaks.has('no_repair') && part === 'edge') {
    broken.read = async (tenant_id, after, options) => {
      const page = await outbox.read(tenant_id, after, options);
      return { ...page, entries: [], next: page.head };
    };
    broken.heads = async (tenant_ids) => tenant_ids.map(() => 0);
  }
  if (breaks.has('confirm_ahead'))
    broken.register = async (tenant_id, device) => {
      const registered = await outbox.register(tenant_id, device);
      return registered.refused === undefined ? { ...registered, watermark: registered.head } : registered;
    };
  Object.defineProperty(broken, 'connected', { get: () => outbox.connected });
  return broken;
}

/** The store with promises broken on purpose. */
export function brokenStore(store: Store, breaks: ReadonlySet<Break>): Store {
  const { messages, tenants, receipts, reads } = store;
  let inserted = 0;
  let insert = messages.insert;
  let reserveCursors = tenants.reserveCursors;
  if (breaks.has('forget_keys'))
    insert = (rows) =>
      messages.insert(
        rows.map((row) => ({ ...row, message: { ...row.message, idempotency_key: `forgotten ${++unique}`, client_ref: null } })),
      );
  if (breaks.has('answer_before_store'))
    insert = async (rows) => {
      const kept = rows.filter(() => ++inserted % 3 !== 0);
      const results = await messages.insert(kept);
      return rows.map((row) => results[kept.indexOf(row)] ?? { row: row.message, inserted: true });
    };
  if (breaks.has('reuse_cursors')) {
    const given = new Map<string, { from: number; to: number }>();
    reserveCursors = async (tenant_id, count) => {
      const block = given.get(tenant_id) ?? (await tenants.reserveCursors(tenant_id, count));
      if (block) given.set(tenant_id, block);
      return block;
    };
  }
  const given: Partial<Store['messages']> = {};
  if (breaks.has('keep_deleted')) given.remove = async (_tenant_id, _lane, message_ids) => ({ removed: [...message_ids], media_ids: [] });
  if (breaks.has('search_behind'))
    given.search = async (tenant_id, query) => {
      const found = await messages.search(tenant_id, query);
      return { ...found, rows: found.rows.slice(1) };
    };
  if (breaks.has('skip_in_history'))
    given.page = async (tenant_id, lane, options) => {
      const page = await messages.page(tenant_id, lane, options);
      return page === 'unknown_before' || options.before === undefined ? page : { ...page, rows: page.rows.slice(0, -1) };
    };
  const take: Store['receipts']['take'] = breaks.has('forget_owed_receipts')
    ? async (...of) => (await receipts.take(...of)).slice(0, 0)
    : receipts.take;
  const advance: Store['reads']['advance'] = breaks.has('reads_go_back')
    ? (row) => reads.advance({ ...row, cursor: ++unique as typeof row.cursor })
    : reads.advance;
  return {
    ...store,
    messages: { ...messages, insert, ...given },
    tenants: { ...tenants, reserveCursors },
    receipts: { ...receipts, take },
    reads: { ...reads, advance },
  };
}

/** What reaches a device, with promises about receipts broken on purpose. */
export function brokenReceipts(message: (data: string | Uint8Array) => void, breaks: ReadonlySet<Break>): typeof message {
  if (!['lose_receipts', 'early_receipts', 'mixed_receipts', 'lose_reads'].some((name) => breaks.has(name as Break))) return message;
  let before: string | undefined;
  return (data) => {
    if (typeof data !== 'string') return message(data);
    const frame = JSON.parse(data) as { type: string; id?: unknown; payload: { message_id?: string; device_id?: string; role?: string } };
    const { device_id, message_id, role } = frame.payload;
    if (frame.type === 'read.receipt') {
      if (breaks.has(device_id === undefined ? 'lose_receipts' : 'lose_reads')) return;
      if (device_id === undefined && breaks.has('mixed_receipts')) {
        const named = before ?? message_id;
        before = message_id;
        return message(JSON.stringify({ ...frame, payload: { ...frame.payload, message_id: named } }));
      }
    }
    message(data);
    if (!breaks.has('early_receipts') || frame.type !== 'message' || role !== 'user' || frame.id === undefined) return;
    const { id: _, ...rest } = frame;
    message(JSON.stringify({ ...rest, type: 'read.receipt', payload: { message_id } }));
  };
}
