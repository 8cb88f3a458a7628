import { type Cursor, type DeviceId, laneKey } from '@iris/protocol';
import type { DeviceRow, PushFrameRow, PushLedgerRow, PushTargetRow } from '@iris/store';
import { unwanted } from './quiet.js';
import type { View } from './view.js';

export type Decision =
  | { readonly is: 'skip'; readonly why: string }
  /** It is connected and may confirm still. */
  | { readonly is: 'wait'; readonly until: number }
  | { readonly is: 'push'; readonly target: PushTargetRow };

export interface Patience {
  /** Milliseconds a connected device has to confirm a frame. */
  readonly live_ms: number;
  readonly age_ms: number;
}

/** A device that has just said hello is connected, whether or not the outbox says so yet. */
const greeting_ms = 2_000;

/** Whether a device buzzes for a frame. Pure: everything it knows is in the view. */
export function decide(view: View, frame: PushFrameRow, device: DeviceRow, now: number, { live_ms, age_ms }: Patience): Decision {
  const { device_id } = device;
  if (frame.except_device_id === device_id) return skip('its own');
  const gone = goneWhy(view, frame);
  if (gone !== undefined) return skip(gone);
  const { watermark, live } = view.standing.get(device_id) ?? { watermark: 0, live: false };
  if (watermark >= frame.cursor) return skip('confirmed');
  if (readBy(view, frame) !== undefined) return skip('read');
  if (now > frame.at + age_ms) return skip('too old');
  const no = unwanted(view.rules.get(device_id) ?? [], frame, now);
  if (no !== undefined) return skip(no);
  const target = view.targets.get(device_id)?.[0];
  if (target === undefined) return skip('no target');
  const until = live ? frame.at + live_ms : Math.min(frame.at + live_ms, device.last_seen_at + greeting_ms);
  if (now < until) return { is: 'wait', until };
  return { is: 'push', target };
}
const skip = (why: string): Decision => ({ is: 'skip', why });

/** Why there is nothing to say any more: for everyone. */
export function goneWhy(view: View, frame: PushFrameRow): 'deleted' | 'answered' | 'with its picker' | undefined {
  if (!view.names.has(laneKey(frame))) return 'deleted';
  if (frame.message_id !== null && !view.messages.has(frame.message_id)) return 'deleted';
  if (frame.picker_id !== null) {
    const picker = view.pickers.get(frame.picker_id);
    if (picker === undefined) return 'deleted';
    if (picker.state !== 'open' || (picker.expires_at !== null && picker.expires_at <= view.at)) return 'answered';
  }
  // An approval or a question comes with a notification of its own; the picker says more, and can be answered.
  if (frame.class === 'notification' && view.asking.has(laneKey(frame)) && standsBesidePicker(view, frame)) return 'with its picker';
  return undefined;
}

function standsBesidePicker(view: View, frame: PushFrameRow): boolean {
  const beside = view.frames.get(frame.cursor - 1);
  return beside?.picker_id !== undefined && beside.picker_id !== null && laneKey(beside) === laneKey(frame);
}

/** A device that has read the lane as far as the frame. */
export function readBy(view: View, frame: PushFrameRow): DeviceId | undefined {
  for (const [device_id, cursor] of view.reads.get(laneKey(frame)) ?? []) if (cursor >= frame.cursor) return device_id;
  return undefined;
}

/** Ledger rows of one device: each skipped frame by itself, and what is pushed collapsed per lane into one. */
export function ledgerRows(
  view: View,
  device: DeviceRow,
  decisions: readonly (readonly [PushFrameRow, Decision])[],
  now: number,
  due_at: number,
): PushLedgerRow[] {
  const base = (frame: PushFrameRow): PushLedgerRow => ({
    tenant_id: view.tenant_id,
    device_id: device.device_id,
    cursor: frame.cursor,
    class: frame.class,
    chat_id: frame.chat_id,
    thread_id: frame.thread_id,
    state: 'skipped',
    why: null,
    with_cursor: null,
    covers: frame.cursor,
    provider: null,
    answer: null,
    attempts: 0,
    due_at,
    decided_at: now,
    sent_at: null,
    withdrawn_at: null,
  });
  const lanes = new Map<string, PushFrameRow[]>();
  const rows: PushLedgerRow[] = [];
  for (const [frame, decision] of decisions) {
    if (decision.is === 'skip') rows.push({ ...base(frame), why: decision.why });
    if (decision.is === 'push') lanes.set(laneKey(frame), [...(lanes.get(laneKey(frame)) ?? []), frame]);
  }
  for (const frames of lanes.values()) {
    const lead = leadOf(frames);
    const covers: Cursor = Math.max(...frames.map(({ cursor }) => cursor));
    for (const frame of frames)
      rows.push(
        frame === lead
          ? { ...base(frame), state: 'pending', covers, provider: view.targets.get(device.device_id)?.[0]?.kind ?? null }
          : { ...base(frame), state: 'collapsed', with_cursor: lead.cursor },
      );
  }
  return rows;
}

/** A question waits for a person: it is shown, whatever came after it. */
export function leadOf(frames: readonly PushFrameRow[]): PushFrameRow {
  const newest = (some: readonly PushFrameRow[]) => some.reduce((one, other) => (other.cursor > one.cursor ? other : one));
  const pickers = frames.filter(({ picker_id }) => picker_id !== null);
  return newest(pickers.length > 0 ? pickers : frames);
}
