import {
  type DurableFrame,
  durableFrame,
  failedKey,
  type Lane,
  laneKey,
  type MessageId,
  type PickerId,
  type TenantId,
} from '@iris/protocol';
import type { AgentFrameRow, MessageRow, PickerRow, TurnRow } from '@iris/store';
import type { Context } from '../context.js';
import type { Effects, LiveFrame, OutFrame } from '../emission.js';
import { acceptedKey, busyOut, idleOut, laneFrame, messageOut, stopOut, toolEndOut } from '../rules/frames.js';
import { messageIdOf } from '../rules/ids.js';
import { messageRow, newTurn } from '../rules/rows.js';
import { busyIn, heardKey, type Room, type TurnState, textKey, turnKey } from './room.js';

export type Outcome = NonNullable<TurnRow['outcome']>;
type Needs = Pick<Context, 'store' | 'clock'>;

export const pickerClosed = (row: PickerRow, more: { reason?: string; expired?: true; value?: PickerRow['value'] }): DurableFrame => {
  const { value, ...rest } = more;
  const payload = {
    picker_id: row.picker_id as PickerId,
    ...rest,
    ...(value === undefined || value === null ? {} : { value: typeof value === 'string' ? value : [...value] }),
  };
  return durableFrame(laneFrame('picker.closed', row, payload), { key: `closed:${row.picker_id}` });
};

/**
 * A turn ends, whoever says so: its running messages stop with the text so far, its tools and pickers close, a failure is told, and the
 * lane is idle. Messages are stored first; that the turn has ended is stored last, once devices can know it: until then it counts
 * as open, and whoever finds it closes it again with the same keys, to the same effect.
 * @param options.own the agent ended it itself, and need not be told
 */
export async function closeTurn(
  { store, clock }: Needs,
  tenant_id: TenantId,
  room: Room,
  state: TurnState,
  outcome: Outcome,
  options: { own: boolean; error?: string | undefined },
): Promise<Effects> {
  const interrupted = outcome !== 'completed';
  const rows = state.messages.map(({ message_id, own_id, role }) => {
    const { text = '', reasoning = '' } = room.texts.get(message_id) ?? {};
    return messageRow(tenant_id, state, message_id, {
      role,
      text,
      reasoning: reasoning === '' ? null : reasoning,
      own_id,
      ts: clock.now(),
      turn_id: state.turn_id,
      interrupted,
    });
  });
  if (outcome === 'failed') rows.push(failure(tenant_id, state, clock.now(), options.error));
  const stored = rows.length === 0 ? [] : await store.messages.insert(rows.map((message) => ({ message })));
  // One that has a place was said before.
  const kept = stored.flatMap((one) => (typeof one === 'string' || one.row.cursor !== null ? [] : [one.row]));
  const running = new Set<MessageId>(state.messages.map(({ message_id }) => message_id));
  const pickers = [...room.pickers.values()].filter((picker) => picker.turn_id === state.turn_id);

  const frames: OutFrame[] = [
    ...kept.filter(({ message_id }) => running.has(message_id)).map(stopOut),
    ...state.tools.map(({ index, name }) => toolEndOut(state, { index, name, ok: false })),
    ...pickers.map((picker) => pickerClosed(picker, { reason: 'turn_ended' })),
    ...kept.filter(({ message_id }) => !running.has(message_id)).map((row) => messageOut(row)),
  ];
  // One that nobody had said anything of has its beginning told with its end: who waits for the end of what was sent hears it.
  const untold = state.reason === null && !state.accepted && busyIn(room, state).length === 0;
  if (untold) frames.unshift(busyOut(state, 'processing', acceptedKey(state)));
  if (state.reason !== null || untold) frames.push(idleOut(state));

  const agent = options.own ? [] : await tellPickers({ store }, tenant_id, state.agent_id, pickers);
  const closed: TurnState = { ...state, ended: true };
  return {
    before: endTyping(room, state),
    frames,
    values: Object.fromEntries([
      [turnKey(state.turn_id), JSON.stringify(closed)],
      ...state.messages.map(({ message_id }) => [textKey(message_id), null] as const),
    ]),
    agent: [{ agent_id: state.agent_id, rows: agent }],
    know() {
      room.turns.set(state.turn_id, closed);
      for (const { message_id } of state.messages) room.texts.delete(message_id);
      for (const picker of pickers) room.pickers.delete(picker.picker_id);
    },
    async after() {
      for (const picker of pickers)
        await store.pickers.close(tenant_id, picker.picker_id, { state: 'closed', value: null, answered_by: state.turn_id });
      // What was told to the turn and not taken is the lane's next.
      for (const message_id of state.steers) await queueSteer({ store, clock }, tenant_id, message_id);
      await store.turns.end(tenant_id, state.turn_id, { outcome, at: clock.now() });
      if (room.turns.get(state.turn_id) === closed) room.turns.delete(state.turn_id);
    },
    drop: [turnKey(state.turn_id), heardKey(state.turn_id)],
  };
}

/** What is asked in a turn that was stopped need not be answered any more. */
export async function closePickers({ store }: Needs, tenant_id: TenantId, room: Room, state: TurnState): Promise<Effects> {
  const pickers = [...room.pickers.values()].filter((picker) => picker.turn_id === state.turn_id);
  return {
    frames: pickers.map((picker) => pickerClosed(picker, { reason: 'turn_ended' })),
    agent: [{ agent_id: state.agent_id, rows: await tellPickers({ store }, tenant_id, state.agent_id, pickers) }],
    know() {
      for (const { picker_id } of pickers) room.pickers.delete(picker_id);
    },
    async after() {
      for (const { picker_id } of pickers)
        await store.pickers.close(tenant_id, picker_id, { state: 'closed', value: null, answered_by: state.turn_id });
    },
  };
}

/** A steer's message gets a turn of its own. */
export async function queueSteer({ store, clock }: Needs, tenant_id: TenantId, message_id: MessageId): Promise<void> {
  const message = await store.messages.get(tenant_id, message_id);
  if (message === undefined) return;
  await store.turns.queue(tenant_id, message, newTurn(message, { kind: 'chat', created_at: clock.now(), connection_id: null }));
}

/** Why it failed, for the person who waits. */
function failure(tenant_id: TenantId, state: TurnState, ts: number, error: string | undefined): MessageRow {
  const why = error?.trim() ?? '';
  const key = failedKey(state.turn_id);
  return messageRow(tenant_id, state, messageIdOf(tenant_id, key), {
    role: 'system',
    text: why === '' ? 'The agent could not finish.' : `The agent could not finish: ${why}`,
    ts,
    turn_id: state.turn_id,
    idempotency_key: key,
  });
}

export function tellPickers(
  { store }: Pick<Context, 'store'>,
  tenant_id: TenantId,
  agent_id: TurnState['agent_id'],
  pickers: readonly PickerRow[],
): Promise<AgentFrameRow[]> {
  const frames = pickers.map((picker) => ({
    frame: pickerClosedDown(picker, 'turn_ended'),
    key: `closed:${picker.picker_id}`,
  }));
  return frames.length === 0 ? Promise.resolve([]) : store.agentFrames.append(tenant_id, agent_id, frames);
}

export const pickerClosedDown = (picker: PickerRow, reason: 'expired' | 'turn_ended'): Record<string, unknown> => ({
  type: 'picker.closed',
  chat_id: picker.chat_id,
  thread_id: picker.thread_id,
  ...(picker.turn_id === null ? {} : { turn_id: picker.turn_id }),
  payload: { picker_id: picker.agent_picker_id ?? picker.picker_id, reason },
});

/** Nobody types in a lane that is idle. */
export function endTyping(room: Room, lane: Lane): LiveFrame[] {
  const typing = room.typing.get(laneKey(lane));
  if (typing === undefined) return [];
  typing.cancel();
  room.typing.delete(laneKey(lane));
  return [{ frame: laneFrame('typing.stop', lane, {}), key: '', rev: 0 }];
}
