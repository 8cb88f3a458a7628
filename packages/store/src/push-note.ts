import { type Cursor, type DurableFrame, laneOfKey, type TenantId } from '@iris/protocol';
import type { PushFrameRow } from './push.js';

/** The note of a frame that is worth a push, as whoever appends it leaves it; undefined when it is worth none. */
export function pushNote(tenant_id: TenantId, frame: DurableFrame, cursor: Cursor, at: number): Omit<PushFrameRow, 'decided'> | undefined {
  const { alert, lane, except_device_id = null } = frame;
  if (alert === undefined || lane === undefined) return undefined;
  const { message_id = null, picker_id = null, title = null, body = null } = alert;
  return { ...laneOfKey(lane), tenant_id, cursor, class: alert.class, message_id, picker_id, title, body, except_device_id, at };
}
