import { type ChatId, durableFrame, notFound, rateLimited, unsupported } from '@iris/protocol';
import type { DeviceHandler } from '../context.js';
import { channelCreated } from '../rules/frames.js';
import { keptName } from '../rules/names.js';
import { quotasOf, tellAgents } from './lookup.js';

export const channelCreate: DeviceHandler<'channel.create'> = async (request, context) => {
  const { tenant_id, deadline, frame, key, origin } = request;
  const { store, clock, directory, emitter } = context;
  const { kind = 'channel', parent_chat_id = null } = frame.payload;
  const name = keptName(frame.payload.name);
  if (kind === 'thread' && parent_chat_id === null) throw unsupported('parent_chat_id: missing');
  const max = (await quotasOf(tenant_id, context)).channels;
  const placed = await emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    async run() {
      const made = await store.channels.create({
        tenant_id,
        ...(kind === 'thread' ? { chat_id: parent_chat_id as ChatId } : {}),
        name,
        auto: false,
        idempotency_key: key,
        max,
        at: clock.now(),
      });
      if (made === 'no_channel') throw notFound('parent_chat_id');
      if (made === 'over_quota') throw rateLimited('no more channels', 60_000);
      const shown = channelCreated(made.row);
      const place = `${made.row.chat_id}:${made.row.thread_id ?? ''}`;
      return {
        frames: [{ ...durableFrame(shown, { key: `created:${place}` }), origin }],
        agent: await tellAgents(tenant_id, { ...shown }, `created:${place}`, context),
        know: () => directory.changed(tenant_id, 'channels'),
      };
    },
  });
  return { kind: 'placed', ...placed[0]! };
};
