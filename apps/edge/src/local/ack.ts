import { encode, type UpFrameOf } from '@iris/protocol';
import { confirm } from '../confirm.js';
import type { DeviceConnection } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { respond } from '../outbound.js';

/** `ack {cursor}`: the device has stored everything up to there. Counts as a pong does, no further than what it was given. */
export function ack(edge: EdgeContext, connection: DeviceConnection, frame: UpFrameOf<'ack'>): void {
  confirm(edge, connection, frame.payload.cursor);
  if (frame.id !== undefined) respond(edge, connection, encode({ type: 'ack', payload: { ok: true } }), frame.id);
}
