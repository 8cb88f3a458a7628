import type { MediaAsk, MediaAsks, MediaLinkHolder } from '@iris/bus';
import { type DeviceId, notFound, RequestError, rateLimited, type TenantId, type TokenId } from '@iris/protocol';
import type { MediaRow, Store } from '@iris/store';
import type { Context } from '../context.js';
import { quotasOf } from '../handlers/lookup.js';
import { keptFilename } from '../rules/filename.js';
import { insistShown, mediaEntry } from './media-entry.js';

type Handler<A extends MediaAsk> = (tenant_id: TenantId, ask: MediaAsks[A]['ask'], context: Context) => Promise<MediaAsks[A]['answer']>;

/** A day is over at midnight, UTC; nobody is told to wait longer than this. */
const dayRetry_ms = 3_600_000;

/** Whether an upload may begin, and where it stands. @throws RequestError when it may not */
const begin: Handler<'media.begin'> = async (tenant_id, ask, context) => {
  const { store, clock } = context;
  const { file_bytes, stored_bytes, upload_bytes_per_day } = await quotasOf(tenant_id, context);
  const { device_id, media_id, object_id, media_ref, kind, mime, size, resume } = ask;
  if (size > file_bytes) throw new RequestError('media_too_large', `size: a file has at most ${file_bytes} bytes`);
  const found = resume ? await store.media.byRef(tenant_id, device_id as NonNullable<MediaRow['device_id']>, media_ref) : undefined;
  if (found?.size === size && found.state === 'uploading' && found.object_id !== null)
    return { media_id: found.media_id, object_id: found.object_id, resumed: true };
  // It had come to its end, and only the word of it was lost.
  if (found?.state === 'uploaded' && found.object_id !== null && found.uploaded_sha256 !== null && ask.size === sizeAsUploaded(found))
    return { media_id: found.media_id, object_id: found.object_id, resumed: true, sha256: found.uploaded_sha256 };
  const begun = await store.media.begin(
    {
      tenant_id,
      media_id,
      object_id,
      media_ref,
      device_id: device_id as MediaRow['device_id'],
      state: 'uploading',
      kind,
      mime,
      size,
      filename: keptFilename(ask.filename, kind),
      sha256: ask.sha256 ?? '',
      uploaded_sha256: null,
      details: {},
      created_at: clock.now(),
      processed: false,
    },
    { stored_bytes, day_bytes: upload_bytes_per_day },
  );
  if (begun === 'no_tenant') throw new RequestError('auth', 'not accepted');
  if (begun === 'full') throw new RequestError('media_too_large', 'size: more than there is room for');
  if (begun === 'day_full') throw rateLimited('no more uploads today', dayRetry_ms);
  return { media_id, object_id, resumed: false };
};

/** What was taken out of it (metadata) does not make it another file to whoever sent it. */
const sizeAsUploaded = ({ size, details }: MediaRow): number => (typeof details.uploaded_size === 'number' ? details.uploaded_size : size);

/** Answered once a worker has looked at it, so that the message which is to bring it can say what it is; or without, when that takes too long. */
const commit: Handler<'media.commit'> = async (tenant_id, { media_id, object_id, size, sha256 }, { store, mediaReady, config }) => {
  const row = await store.media.complete(tenant_id, media_id, { object_id, size, sha256 });
  // Complete by other bytes meanwhile: these are not the file.
  if (row === undefined || (row.uploaded_sha256 !== null && row.uploaded_sha256 !== sha256)) throw notFound('media_ref');
  const seen = await mediaReady.processed(row, config.media_ready_ms);
  if (seen?.details.withheld === true) {
    await store.media.remove(tenant_id, [media_id]);
    insistShown(seen);
  }
  return { sha256 };
};

const abandon: Handler<'media.abandon'> = async (tenant_id, { media_id }, { store }) => {
  const row = await store.media.get(tenant_id, media_id);
  if (row?.state === 'uploading') await store.media.remove(tenant_id, [media_id]);
  return { ok: true };
};

const accept: Handler<'media.accept'> = async (tenant_id, { media_id, object_id, by }, { store }) => {
  if (by !== undefined && !(await stands(tenant_id, by, store))) throw new RequestError('auth', 'not accepted');
  if (object_id !== undefined) await store.media.restart(tenant_id, media_id, object_id);
  const row = await store.media.get(tenant_id, media_id);
  if (row === undefined || row.object_id === null || row.state === 'unused') throw notFound('media_id');
  if (row.state !== 'uploading') return { object_id: row.object_id, size: sizeAsUploaded(row), complete: true };
  return { object_id: row.object_id, size: row.size, ...(row.sha256 === '' ? {} : { sha256: row.sha256 }) };
};

/** A token that has run out opens nothing more, but what it has opened stays. */
async function stands(tenant_id: TenantId, { token_id, device_id }: MediaLinkHolder, store: Store): Promise<boolean> {
  const [tenant, token, device] = await Promise.all([
    store.tenants.get(tenant_id),
    store.tokens.get(tenant_id, token_id as TokenId),
    device_id === undefined ? undefined : store.devices.get(tenant_id, device_id as DeviceId),
  ]);
  const known = device_id === undefined || device?.revoked_at === null;
  return tenant?.state === 'active' && token?.revoked_at === null && known;
}

const find: Handler<'media.find'> = async (tenant_id, { media_id, device_id }, { store, directory }) => {
  // Links are given to all of a tenant, and end with it.
  if ((await directory.tenant(tenant_id))?.active !== true) throw notFound('media_id');
  const row = await store.media.get(tenant_id, media_id);
  const seen =
    row !== undefined && (row.state === 'attached' || row.state === 'offered' || (row.state === 'uploaded' && own(row, device_id)));
  if (!seen || row.object_id === null) throw notFound('media_id');
  // Nobody has taken out yet what may not be given out.
  if (!row.processed && !own(row, device_id)) throw rateLimited('media_id: it is not looked at yet', 2_000);
  insistShown(row);
  return { object_id: row.object_id, entry: mediaEntry(row) };
};
const own = (row: MediaRow, device_id: string | undefined): boolean => device_id !== undefined && row.device_id === device_id;

const handlers: { readonly [A in MediaAsk]: Handler<A> } = {
  'media.begin': begin,
  'media.commit': commit,
  'media.abandon': abandon,
  'media.accept': accept,
  'media.find': find,
};

/** An edge asks about a file. */
export const answerMediaAsk = (type: MediaAsk, tenant_id: TenantId, ask: unknown, context: Context): Promise<object> =>
  (handlers[type] as Handler<MediaAsk>)(tenant_id, ask as never, context);
