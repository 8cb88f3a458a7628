import type { AgentId, AgentUpFrame, Lane, TenantId, TurnId } from '@iris/protocol';
import type { PickerRow } from '@iris/store';
import type { Context } from '../context.js';
import { type Effects, mergeEffects } from '../emission.js';
import { type Room, type TurnState, turnKey } from './room.js';
import { stopTurn } from './stop-turn.js';
import { becomes } from './turn-frames.js';

/*
 * A question that nobody answered in time is told to the agent, whose matter it is what becomes of its turn. One that says nothing more of a turn
 * that stood still for the answer has forgotten it: the turn is stopped, or it would be shown as busy for ever, and hold its lane up.
 */

/** The picker of this row has run out: its turn waits for the agent's next word, if it waited for the answer. */
export function ranOut(row: PickerRow, room: Room, { clock, silence }: Pick<Context, 'clock' | 'silence'>): Effects {
  const state = row.turn_id === null ? undefined : room.turns.get(row.turn_id);
  if (state === undefined || !state.accepted || state.ended || state.stop_at !== null) return {};
  // What an agent does beside its question is not held against it.
  const stands = state.reason === 'waiting_input' || !silence.saidSince(state.agent_id, state.turn_id, row.created_at);
  return stands ? becomes(room, { ...state, unanswered_at: clock.now() }) : {};
}

/** Agents say by themselves that they type, wait, or are back: that furthers no turn. */
const noWord: ReadonlySet<string> = new Set(['ack', 'ping', 'pong', 'typing', 'typing.stop', 'picker.closed', 'turn.snapshot']);
const isWord = (frame: AgentUpFrame): boolean =>
  !noWord.has(frame.type) && !(frame.type === 'agent.busy' && frame.payload.reason === 'waiting_input');

/**
 * The agent goes on with its turn; or its link is back, which may be how it hears of the end of its question. Known at once, so that what the frame
 * makes of the turn says so too.
 * @returns whether the turn's value is to be written
 */
export function goesOn(agent_id: AgentId, frame: AgentUpFrame, room: Room, { clock }: Pick<Context, 'clock'>): boolean {
  const state = frame.turn_id === undefined ? undefined : room.turns.get(frame.turn_id);
  if (state?.unanswered_at === undefined || state.agent_id !== agent_id) return false;
  const { unanswered_at: _, ...standing } = state;
  const back = frame.type === 'turn.snapshot';
  if (!back && !isWord(frame)) return false;
  const next: TurnState = back ? { ...standing, unanswered_at: clock.now() } : standing;
  room.turns.set(state.turn_id, next);
  return true;
}

/** The value of a turn as it stands now. */
export function asItStands(room: Room, turn_id: TurnId): Record<string, string> {
  const state = room.turns.get(turn_id);
  return state === undefined ? {} : { [turnKey(turn_id)]: JSON.stringify(state) };
}

/** Whether the agent has had its time, since it could be heard. Another question of the turn that is still open has a time of its own. */
export function isForgotten(state: TurnState, room: Room, since: number, { clock, config }: Pick<Context, 'clock' | 'config'>): boolean {
  if (state.unanswered_at === undefined || state.ended || state.stop_at !== null) return false;
  if (clock.now() - Math.max(state.unanswered_at, since) < config.unanswered_ms) return false;
  return ![...room.pickers.values()].some(({ turn_id }) => turn_id === state.turn_id);
}

/** From here on it is as if a person had stopped it: the agent is asked, and has until the deadline of a stop. */
export async function stopForgotten(tenant_id: TenantId, turn_id: TurnId, since: number, context: Context): Promise<void> {
  let lane: Lane | undefined;
  const run = async (): Promise<Effects> => {
    const room = await context.rooms.of(tenant_id);
    const state = room.turns.get(turn_id);
    if (state === undefined || !isForgotten(state, room, since, context)) return {};
    lane = state;
    return mergeEffects(await stopTurn(tenant_id, room, state, context));
  };
  await context.emitter.emit({ kind: 'change', tenant_id, place: 'fresh', run });
  if (lane !== undefined) context.log.info('session.turn_unanswered', { tenant_id, turn_id });
}
