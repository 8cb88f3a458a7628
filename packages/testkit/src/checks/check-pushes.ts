import type { TestDevice } from '../test-device.js';
import type { PushEvidence, Violation } from './evidence.js';

/**
 * At most one visible push per frame and device, each one in the ledger and each that the ledger has with the provider, and `last_pushed_cursor` is the
 * highest that was sent.
 */
export function* checkPushes({ device_id, rows, accepted, last_pushed_cursor, seen = () => true }: PushEvidence): Iterable<Violation> {
  const wrong = (message: string): Violation => ({ oracle: 'O12', message: `${device_id}: ${message}` });
  const shown = new Set(accepted.map(({ cursor }) => cursor));
  const sent = new Map<number, number>();
  const decided = new Set<number>();
  for (const row of rows) {
    const { cursor, state, covers } = row;
    if (decided.has(cursor)) yield wrong(`two decisions about ${cursor}`);
    decided.add(cursor);
    if (state !== 'sent') continue;
    if (sent.has(covers)) yield wrong(`${cursor} and ${sent.get(covers)} were both pushed as ${covers}`);
    sent.set(covers, cursor);
    if (!shown.has(covers) && seen(row)) yield wrong(`the ledger says that ${cursor} was sent as ${covers}, and no provider has it`);
  }
  // One that a provider took and whose answer was lost may be known as something else than sent; it is known.
  const known = new Set(rows.map(({ covers }) => covers));
  for (const cursor of shown) if (!known.has(cursor)) yield wrong(`${cursor} was pushed, and the ledger does not know it`);
  for (const { cursor, state, with_cursor } of rows) {
    if (state !== 'collapsed') continue;
    const lead = rows.find((row) => row.cursor === with_cursor);
    if (lead === undefined || lead.state === 'collapsed')
      yield wrong(`${cursor} is collapsed into ${with_cursor}, which stands for nothing`);
    else if (lead.covers < cursor) yield wrong(`${cursor} is collapsed into ${with_cursor}, which reaches only to ${lead.covers}`);
  }
  const highest = Math.max(0, ...sent.keys());
  if (last_pushed_cursor < highest) yield wrong(`last_pushed_cursor is ${last_pushed_cursor}, and ${highest} was sent`);
}

/** What a device was told never moves back. */
export function* checkLastPushed({ device_id, connections }: Pick<TestDevice, 'device_id' | 'connections'>): Iterable<Violation> {
  let last = 0;
  for (const { ack } of connections) {
    const cursor = ack?.payload.last_pushed_cursor;
    if (typeof cursor !== 'number') continue;
    if (cursor < last) yield { oracle: 'O12', message: `${device_id}: last_pushed_cursor ${cursor} after ${last}` };
    last = cursor;
  }
}
