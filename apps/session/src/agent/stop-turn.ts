import type { TenantId } from '@iris/protocol';
import type { Context } from '../context.js';
import type { Effects } from '../emission.js';
import { closePickers, closeTurn } from './close-turn.js';
import type { Room, TurnState } from './room.js';
import { becomes } from './turn-frames.js';

/** The agent is asked to stop this turn, which the sweep ends when it does not. One that no agent can have begun is over at once. */
export async function stopTurn(tenant_id: TenantId, room: Room, state: TurnState, context: Context): Promise<Effects[]> {
  const { store, clock, links } = context;
  await store.turns.requestStop(tenant_id, state.turn_id);
  const frame = { type: 'agent.stop', chat_id: state.chat_id, thread_id: state.thread_id, turn_id: state.turn_id, payload: {} };
  const rows = await store.agentFrames.append(tenant_id, state.agent_id, [{ frame, key: `stop:${state.turn_id}` }]);
  const stopping: TurnState = { ...state, stop_at: state.stop_at ?? clock.now() };
  const here = links.attached(await links.of(tenant_id, state.agent_id));
  if (!state.accepted && !here) {
    await store.agentFrames.withdraw(tenant_id, state.agent_id, state.turn_id);
    return [await closeTurn(context, tenant_id, room, stopping, 'cancelled', { own: false })];
  }
  return [{ ...becomes(room, stopping), agent: [{ agent_id: state.agent_id, rows }] }, await closePickers(context, tenant_id, room, state)];
}
