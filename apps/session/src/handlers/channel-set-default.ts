import { durableFrame, notFound, unsupported } from '@iris/protocol';
import type { DeviceHandler } from '../context.js';
import { channelEntry } from '../rules/frames.js';
import { laneIn } from './lookup.js';

/** The default moves to a channel, never to a thread. Answered and told with the whole list. */
export const channelSetDefault: DeviceHandler<'channel.set_default'> = async (request, context) => {
  const { tenant_id, deadline, frame, key, origin } = request;
  const { store, directory, emitter } = context;
  const lane = await laneIn(tenant_id, frame, context);
  if (lane.thread_id !== null) throw unsupported('thread_id: a thread cannot be the default');
  const placed = await emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    async run() {
      if (!(await store.channels.setDefault(tenant_id, lane.chat_id))) throw notFound('chat_id');
      const channels = (await store.channels.list(tenant_id)).map(channelEntry);
      return {
        frames: [{ ...durableFrame({ type: 'channel.list', payload: { channels } }, { key: `default:${key}` }), origin }],
        know: () => directory.changed(tenant_id, 'channels'),
      };
    },
  });
  return { kind: 'placed', ...placed[0]! };
};
