import type { Lane } from '@iris/protocol';
import { laneKey } from '@iris/protocol';
import { copy } from '../copy.js';
import { mediaIdsOf } from '../media-ids.js';
import type { TurnRow } from '../rows.js';
import { forgetPushes } from './push-state.js';
import type { TenantState } from './state.js';
import { goneMessage, goneTurn } from './usage.js';

/** What Postgres does by foreign keys: all that belongs to the lanes goes with them. */
export function forgetLanes(tenant: TenantState, lanes: readonly Lane[]): { media_ids: string[]; running: TurnRow[] } {
  const keys = new Set(lanes.map(laneKey));
  const gone = (row: Lane): boolean => keys.has(laneKey(row));
  const named = new Set<string>();
  const running: TurnRow[] = [];
  for (const key of keys) tenant.channels.delete(key);
  for (const [key, lane] of tenant.channelKeys) if (keys.has(lane)) tenant.channelKeys.delete(key);
  for (const [id, { row }] of tenant.messages) {
    if (!gone(row)) continue;
    for (const media_id of mediaIdsOf(row.media)) named.add(media_id);
    if (row.idempotency_key !== null) tenant.messageKeys.delete(row.idempotency_key);
    goneMessage(tenant, row);
    tenant.messages.delete(id);
  }
  for (const [id, tombstone] of tenant.tombstones) {
    if (!gone(tombstone.lane)) continue;
    if (tombstone.idempotency_key !== null) tenant.deadKeys.delete(tombstone.idempotency_key);
    tenant.tombstones.delete(id);
  }
  for (const [id, turn] of tenant.turns) {
    if (!gone(turn)) continue;
    if (turn.state === 'sent' || turn.state === 'running') running.push(copy(turn));
    goneTurn(tenant, turn);
    tenant.turns.delete(id);
    tenant.openTurns.delete(id);
  }
  for (const [id, picker] of tenant.pickers) if (gone(picker)) tenant.pickers.delete(id);
  for (const [key, read] of tenant.reads) if (gone(read)) tenant.reads.delete(key);
  forgetPushes(tenant.push, keys, tenant.pickers);
  for (const owed of tenant.receipts.values()) for (const [id, receipt] of owed) if (gone(receipt)) owed.delete(id);
  return { media_ids: dropUse(tenant, named), running };
}

/** Those that no message of the tenant names any more. */
export function unused(tenant: TenantState, media_ids: Iterable<string>): string[] {
  const left = new Set(media_ids);
  if (left.size === 0) return [];
  for (const { row } of tenant.messages.values()) for (const id of mediaIdsOf(row.media)) left.delete(id);
  return [...left];
}

/** Those that no message of the tenant names any more, which are `unused` from now on. */
export function dropUse(tenant: TenantState, media_ids: Iterable<string>): string[] {
  const ids = unused(tenant, media_ids);
  for (const id of ids) {
    const one = tenant.media.get(id);
    if (one?.row.state === 'attached') tenant.media.set(id, { ...one, row: { ...one.row, state: 'unused' } });
  }
  return ids;
}
