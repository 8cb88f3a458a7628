import type { ToEdge } from '@iris/bus';
import { type Cursor, encode, type TenantId } from '@iris/protocol';
import type { LiveFrame } from '../emission.js';

/** A live-only frame as an edge hears of it. */
export function liveRecord(
  tenant_id: TenantId,
  after: Cursor,
  { frame, key, rev, message_id, to }: LiveFrame,
): Extract<ToEdge, { kind: 'ephemeral' }> {
  return {
    kind: 'ephemeral',
    tenant_id,
    after,
    key,
    rev,
    type: frame.type,
    ...(message_id === undefined ? {} : { message_id }),
    ...(to === undefined ? {} : { to: to.connection_id }),
    body: encode(frame),
  };
}
