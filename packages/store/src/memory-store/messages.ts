import type { MessageId } from '@iris/protocol';
import { copy } from '../copy.js';
import { mediaIdsOf } from '../media-ids.js';
import type { MessageRow } from '../rows.js';
import { parseQuery, rankOf } from '../search/query.js';
import { searchText } from '../search/search-text.js';
import { snippetOf } from '../search/snippet.js';
import { storable } from '../storable.js';
import type { Messages, NewTurn } from '../store.js';
import { dropUse } from './lane-removal.js';
import { byPlace, hasLane, laneOf, type MemoryState, type Place, sameLane } from './state.js';
import { newTurn } from './turns.js';
import { goneMessage } from './usage.js';

export function memoryMessages(state: MemoryState): Messages {
  function insertOne({
    message,
    turn,
  }: {
    message: MessageRow;
    turn?: NewTurn;
  }): { row: MessageRow; inserted: boolean } | 'no_lane' | 'deleted' {
    const tenant = state.tenants.get(message.tenant_id);
    if (!tenant) return 'no_lane';
    const { message_id, idempotency_key } = message;
    const byKey = idempotency_key === null ? undefined : tenant.messageKeys.get(idempotency_key);
    const first = tenant.messages.get(byKey ?? message_id) ?? tenant.messages.get(message_id);
    if (first) return { row: copy(first.row), inserted: false };
    if (tenant.tombstones.has(message_id) || (idempotency_key !== null && tenant.deadKeys.has(idempotency_key))) return 'deleted';
    if (!hasLane(tenant, message)) return 'no_lane';
    const row = copy(storable(message));
    tenant.messages.set(message_id, { row, cursor: row.cursor, seq: state.nextSeq(), folded: searchText(row.text) });
    if (idempotency_key !== null) tenant.messageKeys.set(idempotency_key, message_id);
    if (turn) newTurn(state, tenant, laneOf(row), turn);
    return { row: copy(row), inserted: true };
  }
  return {
    insert: async (rows) => rows.map(insertOne),
    async replace(row) {
      const tenant = state.tenants.get(row.tenant_id);
      const old = tenant?.messages.get(row.message_id);
      if (!tenant || !old) return undefined;
      const { role, text, reasoning, media, reply_to, model, tokens, runtime, ts, steer, interrupted, late } = copy(storable(row));
      const replaced: MessageRow = {
        ...old.row,
        role,
        text,
        reasoning,
        media,
        reply_to,
        model,
        tokens,
        runtime,
        ts,
        steer,
        interrupted,
        late,
      };
      tenant.messages.set(row.message_id, { ...old, row: replaced, folded: searchText(text) });
      return copy(replaced);
    },
    async setCursors(marks) {
      for (const { tenant_id, message_id, cursor } of marks) {
        const tenant = state.tenants.get(tenant_id);
        const message = tenant?.messages.get(message_id);
        const tombstone = tenant?.tombstones.get(message_id);
        if (message?.cursor === null) tenant?.messages.set(message_id, { ...message, cursor, row: { ...message.row, cursor } });
        if (tombstone?.cursor === null) tenant?.tombstones.set(message_id, { ...tombstone, cursor });
      }
    },
    get: async (tenant_id, message_id) => copy(state.tenants.get(tenant_id)?.messages.get(message_id)?.row),
    standing: async (tenant_id, message_ids) =>
      message_ids.flatMap((message_id) => state.tenants.get(tenant_id)?.messages.get(message_id)?.row ?? []).map(copy),
    async places(tenant_id, message_ids) {
      const messages = state.tenants.get(tenant_id)?.messages;
      return new Map(
        [...new Set(message_ids)].flatMap((id) => {
          const message = messages?.get(id);
          return message === undefined
            ? []
            : [[id, { ...laneOf(message.row), cursor: message.cursor, own_id: message.row.own_id }] as const];
        }),
      );
    },
    async page(tenant_id, lane, { before, limit }) {
      const tenant = state.tenants.get(tenant_id);
      let end: Place | undefined;
      if (before !== undefined) {
        const message = tenant?.messages.get(before);
        const tombstone = tenant?.tombstones.get(before);
        if (message && sameLane(message.row, lane)) end = message;
        else if (tombstone && sameLane(tombstone.lane, lane)) end = tombstone;
        else return 'unknown_before';
      }
      const earlier = [...(tenant?.messages.values() ?? [])]
        .filter((message) => sameLane(message.row, lane) && (end === undefined || byPlace(message, end) < 0))
        .sort(byPlace);
      return { rows: earlier.slice(Math.max(0, earlier.length - limit)).map(({ row }) => copy(row)), has_more: earlier.length > limit };
    },
    async search(tenant_id, { text, lane, limit }) {
      const query = parseQuery(text);
      const hits = [...(state.tenants.get(tenant_id)?.messages.values() ?? [])]
        .filter(({ row }) => lane === undefined || sameLane(row, lane))
        .flatMap((message) => {
          const rank = rankOf(query, message.folded);
          return rank === undefined ? [] : [{ message, rank }];
        })
        .sort((a, b) => a.rank - b.rank || byPlace(b.message, a.message));
      const rows = hits.slice(0, limit).map(({ message: { row }, rank }) => {
        const { message_id, chat_id, thread_id, role, ts } = row;
        return { message_id, chat_id, thread_id, role, ts, snippet: snippetOf(row.text, query, rank) };
      });
      return { rows, has_more: hits.length > limit };
    },
    async remove(tenant_id, lane, message_ids, at) {
      const tenant = state.tenants.get(tenant_id);
      const removed: MessageId[] = [];
      const named = new Set<string>();
      if (!hasLane(tenant, lane)) return { removed, media_ids: [] };
      for (const message_id of message_ids) {
        const message = tenant.messages.get(message_id);
        if (tenant.tombstones.has(message_id) || (message && !sameLane(message.row, lane))) continue;
        const newest = [...tenant.messages.values()].filter(({ row, cursor }) => sameLane(row, lane) && cursor !== null);
        const place: Place = message ?? { cursor: Math.max(0, ...newest.map(({ cursor }) => cursor ?? 0)), seq: state.nextSeq() };
        const idempotency_key = message?.row.idempotency_key ?? null;
        tenant.tombstones.set(message_id, { cursor: place.cursor, seq: place.seq, lane: laneOf(lane), idempotency_key, at });
        if (!message) continue;
        for (const id of mediaIdsOf(message.row.media)) named.add(id);
        if (idempotency_key !== null) {
          tenant.messageKeys.delete(idempotency_key);
          tenant.deadKeys.set(idempotency_key, message_id);
        }
        goneMessage(tenant, message.row);
        tenant.messages.delete(message_id);
        removed.push(message_id);
      }
      return { removed, media_ids: dropUse(tenant, named) };
    },
    async deleted(tenant_id, message_ids) {
      const tombstones = state.tenants.get(tenant_id)?.tombstones;
      return new Set(message_ids.filter((id) => tombstones?.has(id)));
    },
    async aged(tenant_id, { before_ts, limit }) {
      const tenant = state.tenants.get(tenant_id);
      const waiting = new Set([...(tenant?.turns.values() ?? [])].flatMap((turn) => (turn.state === 'ended' ? [] : [turn.message_id])));
      return [...(tenant?.messages.values() ?? [])]
        .filter(({ cursor }) => cursor !== null)
        .sort(byPlace)
        .slice(0, limit)
        .flatMap(({ row: { message_id, ts, ...row } }) =>
          ts < before_ts && !waiting.has(message_id) ? [{ message_id, ...laneOf(row) }] : [],
        );
    },
    async owed({ before_ts, limit }) {
      const all = [...state.tenants.values()].flatMap((tenant) => [...tenant.messages.values()]);
      return all
        .filter(({ row, cursor }) => cursor === null && row.ts < before_ts)
        .sort((a, b) => a.row.ts - b.row.ts || a.seq - b.seq)
        .slice(0, limit)
        .map(({ row }) => copy(row));
    },
  };
}
