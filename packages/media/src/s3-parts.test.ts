import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { type PartTarget, partRoom, partSink } from './s3-parts.js';

const part_bytes = 256 * 1024;
const target: PartTarget = {
  put: async () => {},
  begin: async () => 'upload',
  part: async () => 'etag',
  complete: async () => {},
  abort: async () => {},
};
/** How much of a room is free, found by taking it all. */
function free(room: ReturnType<typeof partRoom>) {
  let filling = 0;
  while (room.filling.tryTake()) filling++;
  for (let n = 0; n < filling; n++) room.filling.give();
  return filling;
}
const bytes = (parts: number) => [new Uint8Array(parts * part_bytes + 100_000)];

test.each<[string, Partial<PartTarget>, string, (sink: ReturnType<typeof partSink>) => Promise<unknown>]>([
  ['a part fails and the peer goes', { part: () => Promise.reject(new Error('no')) }, tmpdir(), (sink) => sink.suspend()],
  ['it does not begin', { begin: () => Promise.reject(new Error('no')) }, tmpdir(), (sink) => sink.abort()],
  ['a part fails, and so does the file', { part: () => Promise.reject(new Error('no')) }, tmpdir(), (sink) => sink.abort()],
  ['there is no folder to wait in', {}, join(tmpdir(), 'not', 'there'), (sink) => sink.abort()],
])('what an upload had of the room comes back, however it ends: %s', async (_, faults, spill_dir, end) => {
  const room = partRoom({ parts: 6, spill_dir, spill_bytes: 4 * part_bytes });
  const before = free(room);
  for (let round = 0; round < 20; round++) {
    const sink = partSink({ ...target, ...faults }, room, { keep: true, part_bytes });
    // More than there is memory for: some of it waits on disk.
    await sink.write(bytes(before + 1)).catch(() => {});
    await end(sink).catch(() => {});
    expect(free(room)).toBe(before);
  }
  // Of the disk, too: all of it may be used again.
  room.spill(4 * part_bytes);
});
