import {
  encode,
  type MediaId,
  type ObjectId,
  type RequestError,
  type RequestId,
  rateLimited,
  type UpFrameOf,
  unsupported,
} from '@iris/protocol';
import type { DeviceConnection, Member } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { refuse, respond } from '../outbound.js';
import { mediaUploadLink } from './media-upload-link.js';
import { asRequestError, begin, fail, giveUp, store, take, type Upload } from './upload.js';
import { release, uploadsOf } from './uploads.js';

export function mediaUploadStart(edge: EdgeContext, connection: DeviceConnection, member: Member, frame: UpFrameOf<'media.upload.start'>) {
  const { id, payload } = frame;
  if (payload.link === true) return mediaUploadLink(edge, connection, member, frame);
  const uploads = uploadsOf(member);
  if (uploads.open !== undefined) return refuse(edge, connection, id, 'unsupported', 'media_ref: an upload is open; end it first');
  uploads.refused = undefined;
  const upload: Upload = {
    media_ref: payload.media_ref,
    start_id: id,
    size: payload.size,
    sha256: payload.sha256?.toLowerCase(),
    keep: payload.resume === true,
    media_id: `md_${edge.newConnectionId()}` as MediaId,
    object_id: `ob_${edge.newConnectionId()}` as ObjectId,
    received: 0,
    pending: 0,
    queue: [],
    taking: undefined,
    writer: undefined,
    ready: Promise.resolve(),
    complete: undefined,
    begun: Promise.resolve(),
    fault: undefined,
    told: false,
  };
  uploads.open = upload;
  const answered = (offset: number | undefined) => {
    if (offset !== undefined)
      respond(edge, connection, encode({ type: 'media.upload.start', payload: { media_ref: upload.media_ref, offset } }), id);
  };
  upload.begun = begin(edge, member, upload, payload)
    .then(answered)
    .catch((error: unknown) => {
      fail(edge, member, upload, asRequestError(edge, error, 'media.begin'));
      upload.told = true;
      // Its `end` may have come already: then that is answered where it waits.
      if (uploads.open === upload) {
        uploads.open = undefined;
        uploads.refused = { id, error: upload.fault! };
      }
      refuseWith(edge, connection, id, upload.fault!);
    });
}

/**
 * Bytes of the open upload.
 * @param data valid during the call only
 * @param wait milliseconds when it came over the rate of frames
 */
export function binary(edge: EdgeContext, connection: DeviceConnection, member: Member, data: Uint8Array, wait: number) {
  const uploads = member.uploads;
  const upload = uploads?.open;
  if (upload === undefined) {
    if (uploads?.refused !== undefined || member.binary_told) return;
    member.binary_told = true;
    return refuse(edge, connection, undefined, 'unsupported', 'a binary frame with no upload');
  }
  if (upload.fault !== undefined) return;
  // A frame that is not taken leaves a hole.
  if (wait > 0) return fail(edge, member, upload, rateLimited('too many small frames', wait));
  upload.received += data.length;
  if (upload.received > upload.size) return fail(edge, member, upload, unsupported('size: more bytes came than were declared'));
  if (upload.keep && upload.writer === undefined)
    return fail(edge, member, upload, unsupported('resume: bytes come when the start is answered'));
  edge.meters.media_bytes.add(data.length, { direction: 'up' });
  if (upload.taking === undefined && upload.writer?.appendNow(data)) return;
  const { slabs, config } = edge;
  if (upload.pending + data.length > config.upload_pending_bytes)
    return fail(edge, member, upload, rateLimited('the disk is slower than this upload', 5_000));
  // Where nothing goes to the disk any more, half of it is for those that have less than their share.
  const held = slabs.held_bytes + data.length;
  const half = config.uploads_pending_bytes / 2;
  if (held > config.uploads_pending_bytes || (held > half && upload.pending + data.length > half / slabs.waiting))
    return fail(edge, member, upload, rateLimited('the disk is slower than all uploads together', 5_000));
  slabs.fill(upload, data);
  upload.taking ??= take(edge, member, upload).finally(() => {
    upload.taking = undefined;
  });
}

export function mediaUploadEnd(edge: EdgeContext, connection: DeviceConnection, member: Member, frame: UpFrameOf<'media.upload.end'>) {
  const { id, payload } = frame;
  const uploads = uploadsOf(member);
  const { open, refused } = uploads;
  if (open === undefined) {
    uploads.refused = undefined;
    if (refused === undefined) refuse(edge, connection, id, 'unsupported', 'media_ref: no upload is open');
    else if (refused.id === undefined || refused.id !== id) refuseWith(edge, connection, id, refused.error);
    return;
  }
  if (open.media_ref !== payload.media_ref) return refuse(edge, connection, id, 'unsupported', 'media_ref: another upload is open');
  uploads.open = undefined;
  uploads.ending.add(open);
  let answered = false;
  const answer = (say: () => void) => {
    if (answered) return;
    answered = true;
    overdue.cancel();
    uploads.ending.delete(open);
    say();
    release(uploads);
  };
  // What is under way goes on: the device finds it complete when it asks again.
  const overdue = edge.clock.after(edge.config.upload_end_ms, () =>
    answer(() => refuse(edge, connection, id, 'internal', 'not stored in time')),
  );
  void store(edge, member, open, payload.sha256?.toLowerCase()).then(
    (sha256) =>
      answer(() => {
        if (id === undefined) return;
        respond(edge, connection, encode({ type: 'media.upload.ack', payload: { ok: true, media_ref: open.media_ref, sha256 } }), id);
      }),
    (error: unknown) =>
      answer(() => {
        const fault = asRequestError(edge, error, 'end');
        fail(edge, member, open, fault);
        if (!open.told || open.start_id === undefined || open.start_id !== id) refuseWith(edge, connection, id, fault);
      }),
  );
}

/** The connection is gone. What was on its way goes too, unless it is to be gone on with; what has come to its end is stored still. */
export function uploadsLeft(edge: EdgeContext, member: Member): void {
  const uploads = member.uploads;
  const upload = uploads?.open;
  if (uploads === undefined) return;
  uploads.held = [];
  if (upload === undefined || upload.fault !== undefined) return;
  upload.fault = unsupported('the connection was lost');
  edge.slabs.drop(upload);
  uploads.open = undefined;
  giveUp(edge, member, upload, upload.keep);
}

const refuseWith = (edge: EdgeContext, connection: DeviceConnection, id: RequestId | undefined, error: RequestError): void =>
  refuse(edge, connection, id, error.code, error.message, error.retry_after_ms);
