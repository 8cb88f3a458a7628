import { type DownFrame, durableFrame, type TenantId } from '@iris/protocol';
import { type PushFrameRow, pushNote } from '@iris/store';
import type { CheckDeps } from './check.js';

const page = 500;

/**
 * Notes of frames above `cursor` that nobody wrote: whoever appended them was lost before. Messages are not among them, since the repair appends them
 * again, and notes them. Returns how many there were.
 * @param mark.at since when frames above may have come
 */
export async function noteOwed(
  { store, outbox, log }: CheckDeps,
  mark: { tenant_id: TenantId; cursor: number; at: number },
): Promise<number> {
  const { tenant_id, at } = mark;
  let noted = 0;
  for (let after = mark.cursor; ; ) {
    const { entries, next, head } = await outbox.read(tenant_id, after, { limit: page });
    const notes = entries.flatMap(({ push, message_id, cursor, body, except_device_id }): Omit<PushFrameRow, 'decided'> | [] => {
      if (!push || message_id !== undefined) return [];
      const frame = JSON.parse(Buffer.from(body).toString('utf8')) as DownFrame;
      const options = { key: 'as it stands', ...(except_device_id === undefined ? {} : { except_device_id }) };
      return pushNote(tenant_id, durableFrame(frame, options), cursor, at) ?? [];
    });
    const cursors = notes.map(({ cursor }) => cursor);
    const known = new Set((await store.pushFrames.get(tenant_id, cursors)).map(({ cursor }) => cursor));
    const owed = notes.filter(({ cursor }) => !known.has(cursor));
    if (owed.length > 0) {
      await store.pushFrames.note(owed);
      noted += owed.length;
    }
    if (next >= head || next <= after) break;
    after = next;
  }
  if (noted > 0) log.warn('worker.push_noted', { tenant_id, frames: noted });
  return noted;
}
