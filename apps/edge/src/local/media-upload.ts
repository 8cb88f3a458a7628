import { type MediaWriter, NoRoom, WrongSha256 } from '@iris/media';
import {
  encode,
  type MediaId,
  type ObjectId,
  RequestError,
  type RequestId,
  rateLimited,
  type UpFrameOf,
  unsupported,
} from '@iris/protocol';
import type { DeviceConnection, Member } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { askAboutMedia } from '../media-ask.js';
import { anew } from '../media-http-put.js';
import { refuse, respond } from '../outbound.js';
import { mediaUploadLink } from './media-upload-link.js';

/** A file that is on its way from a device. */
export interface Upload {
  readonly media_ref: string;
  readonly start_id: RequestId | undefined;
  readonly size: number;
  /** What the start said that the bytes have. */
  readonly sha256: string | undefined;
  /** What is stored of it outlives the connection. */
  readonly keep: boolean;
  media_id: MediaId;
  object_id: ObjectId;
  /** Bytes that have come, on this connection and before. */
  received: number;
  /** Bytes that the writer has not taken yet. */
  pending: number;
  /** Those that it has not been given. */
  queue: Uint8Array[];
  /** Ends when the writer has taken all that came. Never rejects. */
  taking: Promise<void> | undefined;
  /** Undefined: while it is asked where to go on, nothing may come. */
  writer: MediaWriter | undefined;
  /** Resolves when there is one. */
  ready: Promise<void>;
  /** It was complete before: the hash of its bytes. */
  complete: string | undefined;
  /** Resolves when it is known that it may be stored. Never rejects: see {@link fault}. */
  begun: Promise<void>;
  /** Why it will not be. */
  fault: RequestError | undefined;
  /** The fault was told to the `start`. */
  told: boolean;
}

/** What a connection has on its way up. */
export interface Uploads {
  open: Upload | undefined;
  /** One that was refused: its bytes are swallowed, and its `end`, under the same `id`, is answered already. */
  refused: { readonly id: RequestId | undefined; readonly error: RequestError } | undefined;
  /** Those whose `end` has come and is not answered yet. */
  readonly ending: Set<Upload>;
  /** Requests that name an upload which is ending, and what came behind them. */
  held: { readonly for: readonly Upload[]; readonly run: () => void }[];
}

const uploadsOf = (member: Member): Uploads => (member.uploads ??= { open: undefined, refused: undefined, ending: new Set(), held: [] });

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
  upload.begun = begin(edge, connection, member, upload, payload).catch((error: unknown) => {
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

async function begin(
  edge: EdgeContext,
  connection: DeviceConnection,
  member: Member,
  upload: Upload,
  payload: UpFrameOf<'media.upload.start'>['payload'],
): Promise<void> {
  const { tenant_id } = member.feed;
  const { media_ref, kind, mime, size, filename } = payload;
  const open = async () => {
    upload.writer = await edge.media.open(tenant_id, upload.object_id, { keep: upload.keep });
    if (upload.fault !== undefined) void upload.writer.abort();
  };
  const asking = askAboutMedia(edge, tenant_id, 'media.begin', {
    ...{ device_id: member.device_id, media_id: upload.media_id, object_id: upload.object_id, media_ref, kind, mime, size },
    ...(filename === undefined ? {} : { filename }),
    resume: upload.keep,
  });
  if (!upload.keep) {
    // Its bytes may come at once: they are taken in while it is asked whether they are wanted.
    upload.ready = open();
    await Promise.all([asking, upload.ready]);
    return;
  }
  const begun = await asking;
  upload.media_id = begun.media_id;
  upload.object_id = begun.object_id;
  if (begun.sha256 !== undefined) {
    upload.complete = begun.sha256;
    upload.received = size;
  } else {
    const found = begun.resumed ? await edge.media.resume(tenant_id, upload.object_id) : undefined;
    if (found === undefined) {
      // Whoever began it before may write yet, to the object that was its own.
      if (begun.resumed) {
        const object_id = await anew(edge, tenant_id, upload.media_id);
        if (object_id === undefined) throw rateLimited('media_ref: it has just come to its end elsewhere', 1_000);
        upload.object_id = object_id;
      }
      await open();
    } else {
      upload.writer = found.writer;
      upload.received = found.offset;
    }
  }
  if (upload.fault !== undefined) return void upload.writer?.suspend();
  respond(edge, connection, encode({ type: 'media.upload.start', payload: { media_ref, offset: upload.received } }), upload.start_id);
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
  upload.pending += data.length;
  if (upload.pending > edge.config.upload_pending_bytes)
    return fail(edge, member, upload, rateLimited('the disk is slower than this upload', 5_000));
  edge.meters.media_bytes.add(data.length, { direction: 'up' });
  upload.queue.push(data.slice());
  upload.taking ??= take(edge, member, upload).finally(() => {
    upload.taking = undefined;
  });
}

/** What comes while the writer is busy goes to it in one step, when it is not. */
async function take(edge: EdgeContext, member: Member, upload: Upload): Promise<void> {
  try {
    await upload.ready;
    while (upload.queue.length > 0 && upload.fault === undefined) {
      const chunks = upload.queue;
      upload.queue = [];
      await upload.writer!.append(chunks);
      for (const chunk of chunks) upload.pending -= chunk.length;
    }
  } catch (error) {
    fail(edge, member, upload, asRequestError(edge, error, 'append'));
  }
}

/** It will not be stored: said to its `end`. */
export function fail(edge: EdgeContext, member: Member, upload: Upload, error: RequestError): void {
  if (upload.fault !== undefined) return;
  upload.fault = error;
  upload.queue = [];
  giveUp(edge, member, upload, false);
}

function giveUp(edge: EdgeContext, member: Member, upload: Upload, keep: boolean): void {
  if (upload.complete !== undefined) return;
  void (keep ? upload.writer?.suspend() : upload.writer?.abort());
  if (!keep)
    askAboutMedia(edge, member.feed.tenant_id, 'media.abandon', { media_id: upload.media_id }).catch((error: unknown) =>
      edge.log.debug('edge.not_abandoned', { error }),
    );
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
  void end(edge, member, open, payload.sha256?.toLowerCase()).then(
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

/** @returns the hash of the stored bytes */
async function end(edge: EdgeContext, member: Member, upload: Upload, said: string | undefined): Promise<string> {
  const { tenant_id } = member.feed;
  const wanted = upload.sha256 ?? said;
  await upload.begun;
  if (upload.fault !== undefined) throw upload.fault;
  if (said !== undefined && said !== wanted) throw unsupported('sha256: the start said another');
  if (upload.received !== upload.size) throw unsupported(`size: ${upload.received} of ${upload.size} bytes came`);
  if (upload.complete !== undefined) {
    if (wanted !== undefined && wanted !== upload.complete) throw unsupported('sha256: the bytes have another');
    return upload.complete;
  }
  await upload.taking;
  if (upload.fault !== undefined) throw upload.fault;
  const { media_id, object_id } = upload;
  const { size, sha256 } = await upload.writer!.finish(wanted);
  try {
    const commit = { media_id, object_id, size, sha256 };
    return (await askAboutMedia(edge, tenant_id, 'media.commit', commit, edge.config.upload_end_ms)).sha256;
  } catch (error) {
    // Its row went meanwhile: nobody will ever find these bytes.
    if (error instanceof RequestError && error.code === 'not_found')
      await edge.media.remove(tenant_id, object_id).catch((failed: unknown) => edge.log.warn('edge.not_removed', { object_id, failed }));
    throw error;
  }
}

/** The connection is gone. What was on its way goes too, unless it is to be gone on with; what has come to its end is stored still. */
export function uploadsLeft(edge: EdgeContext, member: Member): void {
  const uploads = member.uploads;
  const upload = uploads?.open;
  if (uploads === undefined) return;
  uploads.held = [];
  if (upload === undefined || upload.fault !== undefined) return;
  upload.fault = unsupported('the connection was lost');
  uploads.open = undefined;
  giveUp(edge, member, upload, upload.keep);
}

/**
 * A request that names an upload which is not stored yet waits for it, and all that come behind it wait too: they take effect in the order
 * in which they were sent.
 * @returns whether it waits
 */
export function holdBehindUploads(uploads: Uploads, refs: readonly string[], run: () => void): boolean {
  const named = [...uploads.ending].filter(({ media_ref }) => refs.includes(media_ref));
  if (named.length === 0 && uploads.held.length === 0) return false;
  uploads.held.push({ for: named, run });
  return true;
}

function release(uploads: Uploads): void {
  while (uploads.held[0]?.for.every((upload) => !uploads.ending.has(upload))) uploads.held.shift()!.run();
}

const refuseWith = (edge: EdgeContext, connection: DeviceConnection, id: RequestId | undefined, error: RequestError): void =>
  refuse(edge, connection, id, error.code, error.message, error.retry_after_ms);

function asRequestError(edge: EdgeContext, error: unknown, what: string): RequestError {
  if (error instanceof RequestError) return error;
  if (error instanceof WrongSha256) return unsupported('sha256: the bytes have another');
  if (error instanceof NoRoom) {
    edge.log.warn('edge.upload_no_room', { what, error });
    return rateLimited(`no room for it now: ${error.message}`, 30_000);
  }
  edge.log.warn('edge.upload_failed', { what, error });
  return new RequestError('internal', 'the file cannot be stored now');
}
