import type { UpFrameOf } from '@iris/protocol';
import { fallBehind, pump } from '../catch-up.js';
import { type DeviceConnection, positionOf } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { refuse } from '../outbound.js';
import { toTicks } from '../ticks.js';
import { sync_ms } from './replay.js';

/** Each is a walk through the outbox; whoever asks for more at once has no use for them. */
const waitingMax = 16;

/** `sync {cursor?}`: the connection catches up from the outbox, the asked replay first; live frames wait behind it. */
export function sync(edge: EdgeContext, connection: DeviceConnection, frame: UpFrameOf<'sync'>) {
  const { state } = connection;
  if (state.kind !== 'live' && state.kind !== 'catching_up') return;
  if (state.kind === 'catching_up' && state.syncs.length >= waitingMax)
    return refuse(edge, connection, frame.id, 'rate_limited', 'too many syncs at once', 1_000);
  const job = { id: frame.id, at: frame.payload.cursor, truncated: false, deadline: edge.time.tick + toTicks(sync_ms) };
  if (state.kind === 'live') return fallBehind(edge, connection, state.member, positionOf(state), [job]);
  state.syncs.push(job);
  pump(edge, connection);
}
