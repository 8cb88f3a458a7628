import { durableFrame, type Lane, laneKey, unsupported } from '@iris/protocol';
import { endTyping, tellPickers } from '../agent/close-turn.js';
import { heardKey, type TurnState, textKey, turnKey } from '../agent/room.js';
import type { Context, DeviceHandler } from '../context.js';
import type { Effects, OutFrame } from '../emission.js';
import { channelDeleted, idleOut, laneOf } from '../rules/frames.js';
import { laneIn, missing, tellAgents } from './lookup.js';

/**
 * A channel with its threads, or one thread, goes for good. It is appended first, then taken out of the store, then answered: a retry after a
 * crash finds it still there, and does the rest with the same keys, or finds the value that says that it went.
 */
export const channelDelete: DeviceHandler<'channel.delete'> = async (request, context) => {
  const { tenant_id, deadline, frame, key, origin } = request;
  const lane = await laneIn(tenant_id, frame, context).catch(async (error: unknown) => {
    const gone = laneOf(frame);
    if (gone === undefined || (await context.emitter.value(tenant_id, goneKey(key))) === undefined) throw error;
    return gone;
  });
  const placed = await context.emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    // Nothing of its lanes may be on its way into the outbox while they are taken out, nor be stored before they are gone.
    place: 'alone',
    run: async () => {
      const effects = await removal(tenant_id, lane, key, context);
      return { ...effects, frames: effects.frames!.map((out, i, all) => (i === all.length - 1 ? { ...out, origin } : out)) };
    },
  });
  return { kind: 'placed', ...placed.at(-1)! };
};

async function removal(tenant_id: Parameters<typeof tellAgents>[0], lane: Lane, key: string, context: Context): Promise<Effects> {
  const { store, directory, rooms } = context;
  const rows = await store.channels.list(tenant_id);
  const row = rows.find((one) => laneKey(one) === laneKey(lane));
  const deleted = channelDeleted(lane);
  const word = durableFrame(deleted, { key: `deleted:${key}` });
  const drop = [goneKey(key)];
  if (row === undefined) {
    if ((await context.emitter.value(tenant_id, goneKey(key))) === undefined) throw await missing(tenant_id, lane, context);
    return { frames: [word], drop, know: () => directory.changed(tenant_id, 'channels') };
  }
  if (row.is_default) throw unsupported('chat_id: the default channel cannot be deleted');
  const lanes = rows.filter((one) => one.chat_id === lane.chat_id && (lane.thread_id === null || one.thread_id === lane.thread_id));
  const keys = new Set(lanes.map(laneKey));
  const room = await rooms.of(tenant_id);
  const turns = [...room.turns.values()].filter((state) => keys.has(laneKey(state)));
  const stops = await Promise.all(
    turns.map(async ({ agent_id, turn_id, chat_id, thread_id }) => ({
      agent_id,
      rows: await store.agentFrames.append(tenant_id, agent_id, [
        { frame: { type: 'agent.stop', chat_id, thread_id, turn_id, payload: {} }, key: `stop:${turn_id}` },
      ]),
    })),
  );
  const pickers = [...room.pickers.values()].filter((picker) => keys.has(laneKey(picker)));
  const asking = [...new Set(pickers.flatMap(({ agent_id }) => agent_id ?? []))];
  const closed = await Promise.all(
    asking.map(async (agent_id) => {
      const own = pickers.filter((picker) => picker.agent_id === agent_id);
      return { agent_id, rows: await tellPickers({ store }, tenant_id, agent_id, own) };
    }),
  );
  const messages = turns.flatMap((state) => state.messages);
  const told = await tellAgents(tenant_id, { ...deleted }, `deleted:${key}`, context);
  return {
    before: lanes.flatMap((one) => endTyping(room, one)),
    forget: lanes.map((one) => ({ lane: laneKey(one) })),
    frames: [...turns.filter(({ reason }) => reason !== null).map(lastWord), word],
    values: Object.fromEntries<string | null>([
      [goneKey(key), ''],
      ...turns.flatMap(({ turn_id }) => [turnKey(turn_id), heardKey(turn_id)].map((name) => [name, null] as const)),
      ...messages.map(({ message_id }) => [textKey(message_id), null] as const),
    ]),
    agent: [...stops, ...closed, ...told],
    know() {
      for (const { turn_id } of turns) room.turns.delete(turn_id);
      for (const { message_id } of messages) room.texts.delete(message_id);
      for (const { picker_id } of pickers) room.pickers.delete(picker_id);
    },
    async settle() {
      await store.channels.remove(tenant_id, lane);
      directory.changed(tenant_id, 'channels');
    },
    drop,
  };
}

/** Stands from the append of the last word to the end of the request that asked for it. */
const goneKey = (key: string): string => `gone:${key}`;

/** As what is said of the lane, it stays: a retry takes out what the lane has, and must not take this. */
function lastWord(turn: TurnState): OutFrame {
  const { lane: _, ...idle } = idleOut(turn);
  return idle;
}
