import { encode, type UpFrameOf } from '@iris/protocol';
import type { DeviceConnection } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { respond } from '../outbound.js';

/** `ping` → `pong`, also without an `id`. */
export function ping(edge: EdgeContext, connection: DeviceConnection, frame: UpFrameOf<'ping'>): void {
  const { ts } = frame.payload;
  const pong = encode({ type: 'pong', payload: { ...(ts === undefined ? {} : { ts }), server_ts: edge.clock.now() } });
  respond(edge, connection, pong, frame.id);
}
