import { type DownFrame, encode, type Lane, limits, type MessageId, messagePayload, notFound, type TenantId } from '@iris/protocol';
import type { Context, DeviceHandler } from '../context.js';
import { laneFrame } from '../rules/frames.js';
import { laneIn } from './lookup.js';

/** Bytes of messages in one page: what the bus and a socket carry without holding others up. A page that is cut by it says `has_more`. */
const pageBytes = 768 * 1024;

export const history: DeviceHandler<'history'> = async ({ tenant_id, frame }, context) => ({
  kind: 'frame',
  frame: await historyPage(tenant_id, await laneIn(tenant_id, frame, context), frame.payload, context),
});

/** A page of a lane's finished messages, oldest first. */
export async function historyPage(
  tenant_id: TenantId,
  lane: Lane,
  { before_message_id, limit }: { before_message_id?: string | null; limit?: number },
  { store }: Pick<Context, 'store'>,
): Promise<DownFrame> {
  const wanted = Number.isNaN(limit) ? limits.history_page_default : Math.trunc(limit ?? limits.history_page_default);
  const page = await store.messages.page(tenant_id, lane, {
    ...(before_message_id === undefined || before_message_id === null ? {} : { before: before_message_id as MessageId }),
    limit: Math.min(limits.history_page_max, Math.max(1, wanted)),
  });
  if (page === 'unknown_before') throw notFound('before_message_id');
  let messages = page.rows.map(messagePayload);
  let has_more = page.has_more;
  // The newest stay: the next page begins where this one ends, whatever was left out.
  let bytes = 0;
  for (let i = messages.length - 1; i >= 0; i--) {
    bytes += sizeOf(messages[i]!);
    if (bytes <= pageBytes || i === messages.length - 1) continue;
    messages = messages.slice(i + 1);
    has_more = true;
    break;
  }
  const oldest = messages[0]?.message_id;
  return laneFrame('history', lane, { messages, has_more, ...(oldest === undefined ? {} : { oldest_message_id: oldest }) });
}

const sizeOf = (message: ReturnType<typeof messagePayload>): number => encode({ type: 'message', payload: message }).length;
