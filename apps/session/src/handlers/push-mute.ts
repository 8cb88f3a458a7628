import { notFound, unsupported } from '@iris/protocol';
import { type DeviceHandler, ok } from '../context.js';
import { laneOf } from '../rules/frames.js';
import { laneIn } from './lookup.js';

/** What a device does not want to be pushed takes the place of what it said before, lane by lane. */
export const pushMute: DeviceHandler<'push.mute'> = async ({ tenant_id, device_id, frame }, context) => {
  const { muted_until = null, quiet = null } = frame.payload;
  const lane = laneOf(frame);
  if (lane === undefined && frame.thread_id) throw unsupported('chat_id: missing');
  if (lane !== undefined) await laneIn(tenant_id, frame, context);
  const row = { tenant_id, device_id, chat_id: lane?.chat_id ?? null, thread_id: lane?.thread_id ?? null, muted_until, quiet };
  if (!(await context.store.pushRules.set(row))) throw notFound('device');
  return ok;
};
