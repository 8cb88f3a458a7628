import { type AgentUpFrame, type Lane, notFound, type TenantId } from '@iris/protocol';
import type { TurnRow } from '@iris/store';
import type { AgentRequest, Context } from '../context.js';
import type { Namer } from '../rules/ids.js';
import type { Room, TurnState } from './room.js';

/** What an agent's frame is about. */
export type Scope =
  /** A turn that is open. */
  | { readonly kind: 'open'; readonly lane: Lane; readonly state: TurnState }
  /** A turn of this agent that has ended. */
  | { readonly kind: 'ended'; readonly lane: Lane; readonly row: TurnRow }
  /** No turn: something the agent says by itself. */
  | { readonly kind: 'free'; readonly lane: Lane }
  /** A turn that is not this agent's, or never was. Whatever it says has no effect. */
  | { readonly kind: 'foreign' };

/** @throws RequestError `not_found` when the lane of a frame outside a turn does not exist */
export async function scopeOf(request: AgentRequest, room: Room, context: Context): Promise<Scope> {
  const { tenant_id, agent_id, frame } = request;
  if (frame.turn_id === undefined) return { kind: 'free', lane: await freeLane(tenant_id, frame, context) };
  const state = room.turns.get(frame.turn_id);
  if (state !== undefined && state.agent_id !== agent_id) return { kind: 'foreign' };
  if (state !== undefined && !state.ended) return { kind: 'open', lane: state, state };
  const row = await context.store.turns.get(tenant_id, frame.turn_id);
  if (row === undefined || row.agent_id !== agent_id || row.state === 'queued') return { kind: 'foreign' };
  if (row.state !== 'ended' && state === undefined) {
    // The room was loaded before another instance began the turn: it is behind the truth.
    context.rooms.forget(tenant_id);
    throw new Error(`turn ${frame.turn_id} is ${row.state}, and not in the room`);
  }
  return { kind: 'ended', lane: row, row };
}

async function freeLane(tenant_id: TenantId, { chat_id, thread_id }: AgentUpFrame, { directory }: Context): Promise<Lane> {
  const lane: Lane = { chat_id: chat_id ?? (await directory.channels(tenant_id)).defaultChat, thread_id: thread_id ?? null };
  if ((await directory.lane(tenant_id, lane)) === undefined) throw notFound('chat_id');
  return lane;
}

export const namerOf = ({ tenant_id, agent_id, link, frame }: Pick<AgentRequest, 'tenant_id' | 'agent_id' | 'link' | 'frame'>): Namer => ({
  tenant_id,
  agent_id,
  install_id: link.install_id,
  turn_id: frame.turn_id,
});
