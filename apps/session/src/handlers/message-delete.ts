import type { MessageId } from '@iris/protocol';
import { deleteMessages } from '../agent/message-frames.js';
import type { DeviceHandler } from '../context.js';
import { laneIn } from './lookup.js';

/** Messages go for good. Said to every device, also of ids that are gone already, so that live caches drop them. */
export const messageDelete: DeviceHandler<'message.delete'> = async (request, context) => {
  const { tenant_id, deadline, frame, key, origin } = request;
  const lane = await laneIn(tenant_id, frame, context);
  const placed = await context.emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    // What is still on its way into the outbox must be there, to be taken out again.
    place: 'fresh',
    async run() {
      const room = await context.rooms.of(tenant_id);
      const effects = await deleteMessages(tenant_id, lane, frame.payload.message_ids as MessageId[], { key, room, agents: true }, context);
      const [deleted, ...more] = effects.frames!;
      return { ...effects, frames: [{ ...deleted!, origin }, ...more] };
    },
  });
  // What waited behind a message that is gone may begin.
  context.turns.advance(tenant_id, () => lane);
  return { kind: 'placed', ...placed[0]! };
};
