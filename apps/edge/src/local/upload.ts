import { type MediaWriter, NoRoom, WrongSha256 } from '@iris/media';
import { type MediaId, type ObjectId, RequestError, type RequestId, rateLimited, type UpFrameOf, unsupported } from '@iris/protocol';
import type { Member } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { askAboutMedia } from '../media-ask.js';
import { anew } from '../media-http-put.js';
import type { Waiting } from './slabs.js';

/** A file that is on its way from a device. */
export interface Upload extends Waiting {
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

/** Asks whether it may be, and opens a writer. @returns where to go on, for one that is to be gone on with */
export async function begin(
  edge: EdgeContext,
  member: Member,
  upload: Upload,
  payload: UpFrameOf<'media.upload.start'>['payload'],
): Promise<number | undefined> {
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
    return undefined;
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
  if (upload.fault === undefined) return upload.received;
  void upload.writer?.suspend();
  return undefined;
}

/** What comes while the writer is busy goes to it in one step, when it is not. */
export async function take(edge: EdgeContext, member: Member, upload: Upload): Promise<void> {
  try {
    await upload.ready;
    while (upload.queue.length > 0 && upload.fault === undefined) {
      const taken = upload.queue.splice(0);
      let sure = false;
      try {
        await upload.writer!.append(taken.map(({ memory, used }) => memory.subarray(0, used)));
        sure = true;
      } finally {
        edge.slabs.taken(upload, taken, sure);
      }
    }
  } catch (error) {
    fail(edge, member, upload, asRequestError(edge, error, 'append'));
  }
}

/** It will not be stored: said to its `end`. */
export function fail(edge: EdgeContext, member: Member, upload: Upload, error: RequestError): void {
  if (upload.fault !== undefined) return;
  upload.fault = error;
  edge.slabs.drop(upload);
  giveUp(edge, member, upload, false);
}

/** @param keep what is stored of it, to be gone on with */
export function giveUp(edge: EdgeContext, member: Member, upload: Upload, keep: boolean): void {
  if (upload.complete !== undefined) return;
  void (keep ? upload.writer?.suspend() : upload.writer?.abort());
  if (!keep)
    askAboutMedia(edge, member.feed.tenant_id, 'media.abandon', { media_id: upload.media_id }).catch((error: unknown) =>
      edge.log.debug('edge.not_abandoned', { error }),
    );
}

/** @returns the hash of the stored bytes */
export async function store(edge: EdgeContext, member: Member, upload: Upload, said: string | undefined): Promise<string> {
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

/** What its device hears of a failure. */
export function asRequestError(edge: EdgeContext, error: unknown, what: string): RequestError {
  if (error instanceof RequestError) return error;
  if (error instanceof WrongSha256) return unsupported('sha256: the bytes have another');
  if (error instanceof NoRoom) {
    edge.log.warn('edge.upload_no_room', { what, error });
    return rateLimited(`no room for it now: ${error.message}`, 30_000);
  }
  edge.log.warn('edge.upload_failed', { what, error });
  return new RequestError('internal', 'the file cannot be stored now');
}
