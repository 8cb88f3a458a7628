import { notFound } from '@iris/protocol';
import type { PickerRow } from '@iris/store';
import { pickerClosed } from '../agent/close-turn.js';
import { type Context, type DeviceHandler, ok } from '../context.js';
import type { Effects } from '../emission.js';
import { pickerAnswer } from '../rules/picker-value.js';

/** The first valid answer wins; a second finds nothing to answer. */
export const pickerSelect: DeviceHandler<'picker.select'> = async (request, context) => {
  const { tenant_id, device_id, deadline, frame, key } = request;
  const { picker_id, value } = frame.payload;
  await context.emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    // What closes it is stored behind its frame: nothing of that may be half done.
    place: 'alone',
    async run() {
      const row = await context.store.pickers.get(tenant_id, picker_id as PickerRow['picker_id']);
      if (row === undefined || !(isOpen(row, context) || row.answered_by === key)) throw notFound('picker_id');
      const answered = await answerPicker(row, pickerAnswer(row.type, row.payload, value), key, context);
      if (answered === undefined) throw notFound('picker_id');
      return { ...answered, frames: answered.frames!.map((closed) => ({ ...closed, except_device_id: device_id })) };
    },
  });
  return ok;
};

/** Past its time it is only closed still. */
export const isOpen = ({ state, expires_at }: PickerRow, { clock }: Pick<Context, 'clock'>): boolean =>
  state === 'open' && (expires_at === null || expires_at > clock.now());

/** Decides the picker for this answer, if nobody was before it; undefined when somebody was. */
export async function answerPicker(
  row: PickerRow,
  value: string | readonly string[],
  key: string,
  { store, rooms }: Context,
): Promise<Effects | undefined> {
  const { tenant_id, picker_id, agent_id } = row;
  if ((await store.pickers.close(tenant_id, picker_id, { state: 'answered', value, answered_by: key })) !== 'won') return undefined;
  const frame = {
    type: 'picker.select',
    chat_id: row.chat_id,
    thread_id: row.thread_id,
    ...(row.turn_id === null ? {} : { turn_id: row.turn_id }),
    payload: { picker_id: row.agent_picker_id ?? picker_id, value },
  };
  const rows = agent_id === null ? [] : await store.agentFrames.append(tenant_id, agent_id, [{ frame, key: `select:${picker_id}` }]);
  return {
    frames: [pickerClosed(row, { value })],
    agent: agent_id === null ? [] : [{ agent_id, rows }],
    know: () => void rooms.peek(tenant_id)?.pickers.delete(picker_id),
  };
}
