import { type Lane, laneKey } from '@iris/protocol';
import type { PushLedgerRow } from './push.js';

/** How many decisions about a device are looked through for lanes that it has not come for. */
export const lanesAmong = 40;

/**
 * Of how many other lanes a device was pushed before it was first pushed for this one, and has not come for any of it since.
 * @param rows of the device
 * @param since when it was here last, milliseconds
 */
export function lanesBefore(rows: readonly PushLedgerRow[], lane: Lane, since: number): number {
  const waiting = [...rows]
    .sort((a, b) => b.cursor - a.cursor)
    .slice(0, lanesAmong)
    .filter(({ state, withdrawn_at, sent_at }) => state === 'sent' && withdrawn_at === null && (sent_at ?? 0) > since);
  const first = Math.min(...waiting.filter((row) => laneKey(row) === laneKey(lane)).map(({ cursor }) => cursor));
  return new Set(waiting.filter(({ cursor }) => cursor < first).map(laneKey)).size;
}
