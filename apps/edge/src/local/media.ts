import type { UpFrameOf } from '@iris/protocol';
import type { DeviceConnection, Member } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { refuse } from '../outbound.js';

const notHere = 'media is not available here';

/** A refused upload: its bytes are swallowed, and its end, under the same `id`, is answered already. */
export function mediaUploadStart(
  edge: EdgeContext,
  connection: DeviceConnection,
  member: Member,
  frame: UpFrameOf<'media.upload.start'>,
): void {
  member.refused_upload = { id: frame.id };
  refuse(edge, connection, frame.id, 'unsupported', notHere);
}

export function mediaUploadEnd(
  edge: EdgeContext,
  connection: DeviceConnection,
  member: Member,
  frame: UpFrameOf<'media.upload.end'>,
): void {
  const answered = member.refused_upload !== undefined && member.refused_upload.id === frame.id;
  member.refused_upload = undefined;
  if (!answered) refuse(edge, connection, frame.id, 'unsupported', notHere);
}

export function mediaPull(edge: EdgeContext, connection: DeviceConnection, frame: UpFrameOf<'media.pull'>): void {
  refuse(edge, connection, frame.id, 'unsupported', notHere);
}

/** Binary belongs to an open upload; there is none. Said once. */
export function binary(edge: EdgeContext, connection: DeviceConnection, member: Member): void {
  if (member.refused_upload !== undefined || member.binary_told) return;
  member.binary_told = true;
  refuse(edge, connection, undefined, 'unsupported', 'a binary frame with no upload');
}
