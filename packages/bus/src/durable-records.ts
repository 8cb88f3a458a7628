import type { ConnectionId, Cursor, DeviceId, TenantId } from '@iris/protocol';
import type { ToEdge } from './hop.js';

/** Of a frame that was given to the outbox, what an edge needs to know. */
export interface AppendedFrame {
  readonly body: Uint8Array;
  readonly type: string;
  readonly message_ids?: readonly string[];
  readonly except_device_id?: DeviceId;
  readonly push: boolean;
  readonly origin?: { readonly connection_id: ConnectionId; readonly n: number };
}

/**
 * What edges are told once an append has been made, for the emitter and the repair alike. Only fresh frames: those that
 * stood before were published then, or are found as a gap.
 */
export function durableRecords(
  tenant_id: TenantId,
  frames: readonly AppendedFrame[],
  appended: { readonly cursors: readonly Cursor[]; readonly fresh: readonly boolean[]; readonly previous: Cursor },
): Extract<ToEdge, { kind: 'durable' }>[] {
  const records: Extract<ToEdge, { kind: 'durable' }>[] = [];
  let { previous } = appended;
  frames.forEach((frame, i) => {
    if (appended.fresh[i] !== true) return;
    const cursor = appended.cursors[i]!;
    const message_id = frame.message_ids?.[0];
    records.push({
      kind: 'durable',
      tenant_id,
      cursor,
      previous,
      type: frame.type,
      ...(message_id === undefined ? {} : { message_id }),
      ...(frame.origin === undefined ? {} : { origin: frame.origin }),
      ...(frame.except_device_id === undefined ? {} : { except_device_id: frame.except_device_id }),
      push: frame.push,
      body: frame.body,
    });
    previous = cursor;
  });
  return records;
}
