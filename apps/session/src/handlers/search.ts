import { type DownFrame, type Lane, limits, type TenantId } from '@iris/protocol';
import type { Context, DeviceHandler } from '../context.js';
import { laneOf } from '../rules/frames.js';
import { laneIn } from './lookup.js';

export const search: DeviceHandler<'search'> = async ({ tenant_id, frame }, context) => {
  const { query, scope = laneOf(frame) === undefined ? 'all' : 'chat' } = frame.payload;
  const lane = scope === 'chat' ? await laneIn(tenant_id, frame, context) : undefined;
  return { kind: 'frame', frame: await searchResults(tenant_id, query, lane, context) };
};

export async function searchResults(
  tenant_id: TenantId,
  query: string,
  lane: Lane | undefined,
  { store }: Pick<Context, 'store'>,
): Promise<DownFrame> {
  const found =
    query.trim() === ''
      ? { rows: [], has_more: false }
      : await store.messages.search(tenant_id, { text: query, ...(lane === undefined ? {} : { lane }), limit: limits.search_hits });
  const hits = found.rows.map(({ message_id, chat_id, thread_id, role, snippet, ts }) => ({
    message_id,
    chat_id,
    thread_id,
    role,
    snippet,
    ts,
  }));
  return { type: 'search.results', payload: { query, scope: lane === undefined ? 'all' : 'chat', hits, has_more: found.has_more } };
}
