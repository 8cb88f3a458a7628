import { type AgentUpFrameOf, type DownFrame, durableFrame, firstCodePoints } from '@iris/protocol';
import type { PickerRow } from '@iris/store';
import type { AgentEffects, AgentRequest, Context } from '../context.js';
import type { OutFrame } from '../emission.js';
import { laneFrame } from '../rules/frames.js';
import { agentPickerId } from '../rules/ids.js';
import { pickerClosed } from './close-turn.js';
import { namerOf, scopeOf } from './scope.js';

type PickerType = 'picker.model' | 'picker.choice' | 'picker.clarify' | 'picker.approval' | 'picker.confirm';
type Handler<T extends AgentRequest['frame']['type']> = (
  request: AgentRequest & { readonly frame: AgentUpFrameOf<T> },
  context: Context,
) => Promise<AgentEffects>;

const titles: Record<PickerType, string> = {
  'picker.model': 'Choose a model',
  'picker.choice': 'Choose',
  'picker.clarify': 'A question for you',
  'picker.approval': 'Approval needed',
  'picker.confirm': 'Please confirm',
};

export const pickerOpen: Handler<PickerType> = async (request, context) => {
  const { tenant_id, agent_id, frame } = request;
  const { store, clock, config } = context;
  const room = await context.rooms.of(tenant_id);
  const scope = await scopeOf(request, room, context);
  // The turn is over: nobody would hear the answer.
  if (scope.kind === 'foreign' || scope.kind === 'ended') return {};
  const own_id = frame.payload.picker_id;
  const picker_id = agentPickerId(namerOf(request), own_id);
  const title = frame.payload.title ?? ('question' in frame.payload ? frame.payload.question : undefined) ?? titles[frame.type];
  // What we do not know of it passes through; where it belongs is the envelope's word.
  const { chat_id: _, thread_id: __, ...payload } = { ...frame.payload, picker_id, title } as Record<string, unknown>;
  const row: PickerRow = {
    tenant_id,
    chat_id: scope.lane.chat_id,
    thread_id: scope.lane.thread_id,
    picker_id,
    type: frame.type,
    payload,
    turn_id: scope.kind === 'open' ? scope.state.turn_id : null,
    agent_id,
    agent_picker_id: own_id,
    state: 'open',
    value: null,
    answered_by: null,
    // Nobody waits for ever.
    expires_at: frame.payload.expires_at ?? clock.now() + config.picker_ms,
    created_at: clock.now(),
  };
  const opened = await store.pickers.open(row);
  // Said again after it was answered, it stays answered.
  const standing = opened ? row : await store.pickers.get(tenant_id, picker_id);
  if (standing === undefined || standing.state !== 'open') return {};
  const shown = laneFrame(frame.type, scope.lane, payload as never) as DownFrame;
  return {
    frames: [durableFrame(shown, { key: `picker:${picker_id}` }), ...alongside(standing)],
    know: () => void room.pickers.set(picker_id, standing),
  };
};

/** Approvals and questions hold a turn up until someone looks: they are told in the notification as well. */
function alongside(row: PickerRow): OutFrame[] {
  const kind = row.type === 'picker.approval' ? 'approval' : row.type === 'picker.clarify' ? 'clarify' : undefined;
  if (kind === undefined) return [];
  const { title, command, question, body } = row.payload as { title: string; command?: string; question?: string; body?: string };
  const text = command ?? question ?? body ?? title;
  const payload = { kind, title: firstCodePoints(title, 128), body: firstCodePoints(text, 256), ts: row.created_at } as const;
  return [durableFrame(laneFrame('notification', row, payload), { key: `notification:${row.picker_id}` })];
}

export const pickerClosedByAgent: Handler<'picker.closed'> = async (request, context) => {
  const { tenant_id, frame } = request;
  const { store } = context;
  const room = await context.rooms.of(tenant_id);
  const picker_id = agentPickerId(namerOf(request), frame.payload.picker_id);
  const row = await store.pickers.get(tenant_id, picker_id);
  if (row === undefined || row.state === 'answered' || row.agent_id !== request.agent_id) return {};
  return {
    frames: [pickerClosed(row, frame.payload.reason === undefined ? {} : { reason: frame.payload.reason })],
    know: () => void room.pickers.delete(picker_id),
    async after() {
      await store.pickers.close(tenant_id, picker_id, { state: 'closed', value: null, answered_by: request.key });
    },
  };
};
