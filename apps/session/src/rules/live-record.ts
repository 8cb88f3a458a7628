import type { ToEdge } from '@iris/bus';
import { type Cursor, encode, type TenantId } from '@iris/protocol';
import type { LiveFrame } from '../emission.js';

/** A live-only frame as an edge hears of it. */
export function liveRecord(
  tenant_id: TenantId,
  after: Cursor,
  { frame, key, rev, about, to }: LiveFrame,
): Extract<ToEdge, { kind: 'ephemeral' }> {
  return {
    kind: 'ephemeral',
    tenant_id,
    after,
    key,
    rev,
    type: frame.type,
    ...(about === undefined ? {} : { message_id: about }),
    ...(to === undefined ? {} : { to: to.connection_id }),
    body: encode(frame),
  };
}
