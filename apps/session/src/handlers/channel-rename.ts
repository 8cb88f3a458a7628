import { durableFrame } from '@iris/protocol';
import type { DeviceHandler } from '../context.js';
import { channelRenamed } from '../rules/frames.js';
import { keptName } from '../rules/names.js';
import { laneIn, missing, tellAgents } from './lookup.js';

export const channelRename: DeviceHandler<'channel.rename'> = async (request, context) => {
  const { tenant_id, deadline, frame, key, origin } = request;
  const { store, directory, emitter } = context;
  const name = keptName(frame.payload.name);
  const lane = await laneIn(tenant_id, frame, context);
  const placed = await emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    async run() {
      const row = await store.channels.rename(tenant_id, lane, name, { auto: false });
      if (row === undefined || row === 'conflict') throw await missing(tenant_id, lane, context);
      const shown = channelRenamed(row);
      return {
        frames: [{ ...durableFrame(shown, { key: `renamed:${key}` }), origin }],
        agent: await tellAgents(tenant_id, { ...shown }, `renamed:${key}`, context),
        know: () => directory.changed(tenant_id, 'channels'),
      };
    },
  });
  return { kind: 'placed', ...placed[0]! };
};
