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
  const { messages, tenants } = store;
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
  return { ...store, messages: { ...messages, insert, ...given }, tenants: { ...tenants, reserveCursors } };
}
