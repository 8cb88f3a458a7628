import { type Cursor, type DeviceId, laneKey, type PickerId } from '@iris/protocol';
import type { PushContent, PushFrameRow, PushLedgerRow, PushRuleRow, PushTargetRow } from '../push.js';

/** What the memory store keeps of a tenant's pushes. */
export interface PushState {
  readonly targets: Map<string, PushTargetRow>;
  readonly rules: Map<string, PushRuleRow>;
  readonly frames: Map<Cursor, PushFrameRow>;
  readonly ledger: Map<string, PushLedgerRow>;
  readonly actions: Map<string, { picker_id: PickerId; device_id: DeviceId; expires_at: number; used_by: string | null }>;
  content: PushContent;
  /** When something went stale. */
  stale_at: number | undefined;
  /** By cursor: when it was marked. */
  readonly owed: Map<Cursor, number>;
}
export const newPushState = (): PushState => ({
  targets: new Map(),
  rules: new Map(),
  frames: new Map(),
  ledger: new Map(),
  actions: new Map(),
  content: 'full',
  stale_at: undefined,
  owed: new Map(),
});

/** Frames and tokens of a lane go with it. */
export function forgetPushes(push: PushState, keys: ReadonlySet<string>, pickers: ReadonlyMap<PickerId, unknown>): void {
  for (const [cursor, frame] of push.frames) if (keys.has(laneKey(frame))) push.frames.delete(cursor);
  for (const [hash, { picker_id }] of push.actions) if (!pickers.has(picker_id)) push.actions.delete(hash);
}
