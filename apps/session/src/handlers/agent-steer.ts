import { laneKey, notFound, rateLimited } from '@iris/protocol';
import { queueSteer } from '../agent/close-turn.js';
import { becomes } from '../agent/turn-frames.js';
import type { Answer, Context, DeviceRequest } from '../context.js';
import { mergeEffects } from '../emission.js';
import { messageOut } from '../rules/frames.js';
import { messageIdOf } from '../rules/ids.js';
import { messageRow, newTurn } from '../rules/rows.js';
import { laneIn, quotasOf } from './lookup.js';
import { retryLane_ms } from './send-checks.js';

/** Text for the running turn: a message of the lane like any other. What the turn cannot take becomes the lane's next turn. */
export async function agentSteer(request: DeviceRequest<'agent.steer'>, context: Context): Promise<Answer> {
  const { tenant_id, device_id, connection_id, deadline, frame, key } = request;
  const { store, clock, emitter, rooms, directory, turns } = context;
  const lane = await laneIn(tenant_id, frame, context);
  const message_id = messageIdOf(tenant_id, key);
  const { text } = frame.payload;
  const placing = emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    async run() {
      const room = await rooms.of(tenant_id);
      const state = [...room.turns.values()].find(
        (turn) => turn.kind === 'chat' && turn.accepted && !turn.ended && laneKey(turn) === laneKey(lane),
      );
      const agent = state === undefined ? undefined : await directory.agent(tenant_id, state.agent_id);
      const steers = state !== undefined && state.stop_at === null && agent?.caps.steer === true;
      const message = messageRow(tenant_id, lane, message_id, {
        role: 'user',
        text,
        ts: clock.now(),
        device_id,
        steer: true,
      });
      if (!steers && !(await turns.mayWait(tenant_id, lane, (await quotasOf(tenant_id, context)).waiting_per_lane)))
        throw rateLimited('too many messages wait in this lane', retryLane_ms);
      const turn = steers ? {} : { turn: newTurn(message, { kind: 'chat', created_at: clock.now(), connection_id }) };
      const stored = (await store.messages.insert([{ message, ...turn }]))[0]!;
      if (stored === 'no_lane') throw notFound('chat_id');
      if (stored === 'deleted') throw notFound('message_id');
      const { row, inserted } = stored;
      const isPlaced = row.cursor !== null || emitter.placeOf(message_id) !== undefined;
      // Asked again: what was said stands, and so does what became of it.
      if (isPlaced) return {};
      const said = { frames: [messageOut(row)] };
      if (!steers) {
        // Stored by an instance that died before it could say so, for a turn that has ended since.
        if (!inserted) await queueSteer({ store, clock }, tenant_id, message_id);
        return said;
      }
      const { agent_id, turn_id, chat_id, thread_id } = state;
      const down = { type: 'agent.steer', id: message_id, chat_id, thread_id, turn_id, payload: { text, message_id } };
      const rows = await store.agentFrames.append(tenant_id, agent_id, [{ frame: down, key: `steer:${message_id}` }]);
      const known = state.steers.includes(message_id) ? state.steers : [...state.steers, message_id];
      return mergeEffects([becomes(room, { ...state, steers: known }), { ...said, agent: [{ agent_id, rows }] }]);
    },
  });
  turns.advance(tenant_id, () => lane);
  await placing;
  return { kind: 'frame', frame: { type: 'ack', payload: { ok: true, message_id } } };
}
