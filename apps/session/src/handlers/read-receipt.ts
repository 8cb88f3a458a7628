import { type MessageId, notFound } from '@iris/protocol';
import { type DeviceHandler, ok } from '../context.js';
import { laneIn } from './lookup.js';

/** A person has seen a message. Moves forward only; every other device hears of it, at most once. */
export const readReceipt: DeviceHandler<'read.receipt'> = async (request, context) => {
  const { tenant_id, device_id, deadline, frame } = request;
  const lane = await laneIn(tenant_id, frame, context);
  const message_id = frame.payload.message_id as MessageId;
  const standing = context.reads.seen({ tenant_id, device_id, lane, message_id, deadline });
  request.entered();
  if (!(await standing)) throw notFound('message_id');
  return ok;
};
