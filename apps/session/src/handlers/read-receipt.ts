import { durableFrame, laneKey, type MessageId, notFound } from '@iris/protocol';
import { type DeviceHandler, ok } from '../context.js';
import { laneFrame } from '../rules/frames.js';
import { laneIn } from './lookup.js';

/** A person has seen a message. Moves forward only; every other device hears of it, at most once. */
export const readReceipt: DeviceHandler<'read.receipt'> = async ({ tenant_id, device_id, deadline, frame }, context) => {
  const { store, emitter } = context;
  const lane = await laneIn(tenant_id, frame, context);
  const message_id = frame.payload.message_id as MessageId;
  const row = await store.messages.get(tenant_id, message_id);
  if (row === undefined || laneKey(row) !== laneKey(lane)) throw notFound('message_id');
  await emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    // Not before the message itself has its place.
    place: 'fresh',
    async run() {
      const standing = await store.messages.get(tenant_id, message_id);
      if (standing === undefined) throw notFound('message_id');
      const cursor = standing.cursor ?? emitter.placeOf(message_id) ?? 0;
      const { chat_id, thread_id } = lane;
      if (!(await store.reads.advance({ tenant_id, device_id, chat_id, thread_id, message_id, cursor }))) return {};
      const shown = laneFrame('read.receipt', lane, { message_id, device_id });
      return { frames: [durableFrame(shown, { key: `read:${device_id}:${message_id}`, except_device_id: device_id })] };
    },
  });
  return ok;
};
