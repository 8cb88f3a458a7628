import type { ChatId, Lane, ThreadId } from '@iris/protocol';
import { laneKey } from '@iris/protocol';
import { copy } from '../copy.js';
import type { ChannelRow } from '../rows.js';
import type { Channels } from '../store.js';
import { forgetLanes } from './lane-removal.js';
import { laneOf, type MemoryState } from './state.js';

export function memoryChannels(state: MemoryState): Channels {
  return {
    list: async (tenant_id) => [...(state.tenants.get(tenant_id)?.channels.values() ?? [])].map(copy),
    async create({ tenant_id, chat_id, name, auto, idempotency_key, max, at }) {
      const tenant = state.tenants.get(tenant_id);
      if (!tenant) return 'no_channel';
      const first = tenant.channels.get(tenant.channelKeys.get(idempotency_key) ?? '');
      if (first) return { row: copy(first), created: false };
      const parent = chat_id === undefined ? undefined : tenant.channels.get(laneKey({ chat_id, thread_id: null }));
      if (chat_id !== undefined && !parent) return 'no_channel';
      if (tenant.channels.size >= max) return 'over_quota';
      const number = ++tenant.lastNumber;
      const row: ChannelRow = {
        tenant_id,
        chat_id: parent?.chat_id ?? (`android:chan_${number}` as ChatId),
        thread_id: parent ? (`t_${number}` as ThreadId) : null,
        kind: parent ? 'thread' : 'channel',
        name,
        is_default: false,
        auto,
        agent_id: parent?.agent_id ?? null,
        created_at: at,
      };
      tenant.channels.set(laneKey(row), row);
      tenant.channelKeys.set(idempotency_key, laneKey(row));
      return { row: copy(row), created: true };
    },
    async rename(tenant_id, lane, name, { auto, only_if }) {
      const tenant = state.tenants.get(tenant_id);
      const row = tenant?.channels.get(laneKey(lane));
      if (!tenant || !row) return undefined;
      if (only_if !== undefined) {
        if (row.name === name) return copy(row);
        if (row.name !== only_if || !row.auto) return 'conflict';
      }
      const renamed: ChannelRow = { ...row, name, auto };
      tenant.channels.set(laneKey(lane), renamed);
      return copy(renamed);
    },
    async setDefault(tenant_id, chat_id) {
      const tenant = state.tenants.get(tenant_id);
      const chosen = laneKey({ chat_id, thread_id: null });
      if (!tenant?.channels.has(chosen)) return false;
      for (const [key, row] of tenant.channels) {
        if (row.kind === 'thread' || row.is_default === (key === chosen)) continue;
        tenant.channels.set(key, { ...row, is_default: key === chosen, kind: key === chosen ? 'default' : 'channel' });
      }
      return true;
    },
    async bind(tenant_id, chat_id, agent_id) {
      const tenant = state.tenants.get(tenant_id);
      if (!tenant?.channels.has(laneKey({ chat_id, thread_id: null })) || (agent_id !== null && !tenant.agents.has(agent_id)))
        return undefined;
      for (const [key, row] of tenant.channels) if (row.chat_id === chat_id) tenant.channels.set(key, { ...row, agent_id });
      return copy(tenant.channels.get(laneKey({ chat_id, thread_id: null })));
    },
    async remove(tenant_id, lane) {
      const tenant = state.tenants.get(tenant_id);
      const row = tenant?.channels.get(laneKey(lane));
      if (!tenant || !row) return undefined;
      if (row.is_default) return 'default';
      const going: Lane[] = [...tenant.channels.values()]
        .filter((other) => other.chat_id === lane.chat_id && (lane.thread_id === null || other.thread_id === lane.thread_id))
        .map(laneOf);
      return { lanes: going, ...forgetLanes(tenant, going) };
    },
  };
}
