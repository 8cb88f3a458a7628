import { type AgentUpFrameOf, type DownFrame, type MediaId, notFound, type ObjectId, RequestError, rateLimited } from '@iris/protocol';
import type { MessageRow } from '@iris/store';
import type { AgentRequest, Context } from '../context.js';
import { quotasOf } from '../handlers/lookup.js';
import { keptFilename } from '../rules/filename.js';
import { mediaIdOf } from '../rules/ids.js';
import { insistShown, mediaEntry, mediaIdsOf } from './media-entry.js';

const grant_ms = 3_600_000;

/** An agent wants to give a file: where it may put the bytes. The edge adds the link. */
export async function mediaRequest(
  request: AgentRequest & { readonly frame: AgentUpFrameOf<'media.request'> },
  context: Context,
): Promise<DownFrame> {
  const { tenant_id, key, frame } = request;
  const { kind, mime, size, filename, sha256 = '' } = frame.payload;
  const { file_bytes, stored_bytes, upload_bytes_per_day } = await quotasOf(tenant_id, context);
  if (size > file_bytes) throw new RequestError('media_too_large', `size: a file has at most ${file_bytes} bytes`);
  const now = context.clock.now();
  const name = mediaIdOf(tenant_id, key);
  const media_id = `md_${name}` as MediaId;
  const begun = await context.store.media.begin(
    {
      tenant_id,
      media_id,
      object_id: `ob_${name}` as ObjectId,
      media_ref: null,
      device_id: null,
      state: 'uploading',
      kind,
      mime,
      size,
      filename: keptFilename(filename, kind),
      sha256: sha256.toLowerCase(),
      uploaded_sha256: null,
      details: {},
      created_at: now,
      processed: false,
    },
    { stored_bytes, day_bytes: upload_bytes_per_day },
  );
  if (begun === 'no_tenant') throw new RequestError('auth', 'not accepted');
  if (begun === 'full') throw new RequestError('media_too_large', 'size: more than there is room for');
  if (begun === 'day_full') throw rateLimited('no more uploads today', grant_ms);
  return { type: 'media.grant', payload: { media_id, url: '', expires_at: now + grant_ms } } as unknown as DownFrame;
}

/** Media entries of files that are here, as their rows have them. @throws RequestError `not_found` when the bytes of one are not stored */
export async function shownMedia(
  { tenant_id }: AgentRequest,
  media: readonly { readonly media_id: string }[],
  as: 'offered' | 'attached',
  { store, mediaReady, config }: Context,
): Promise<NonNullable<MessageRow['media']>> {
  const rows = await Promise.all(media.map(({ media_id }) => store.media.get(tenant_id, media_id)));
  const files = rows.flatMap((row) => row ?? []);
  if (files.length < media.length || !(await store.media.show(tenant_id, files.flatMap(mediaIdsOf), as))) throw notFound('media_id');
  const looked = await Promise.all(files.map(async (row) => (await mediaReady.processed(row, config.media_ready_ms / 2)) ?? row));
  looked.forEach(insistShown);
  return looked.map(mediaEntry);
}
