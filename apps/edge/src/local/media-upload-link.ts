import { encode, type MediaId, type ObjectId, RequestError, type UpFrameOf, unsupported } from '@iris/protocol';
import type { DeviceConnection, Member } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { askAboutMedia } from '../media-ask.js';
import { linkTo } from '../media-link.js';
import { refuse, respond } from '../outbound.js';

const link_ms = 3_600_000;

/** An upload whose bytes come by HTTP: the answer says where to, and how much of it is stored already. */
export function mediaUploadLink(
  edge: EdgeContext,
  connection: DeviceConnection,
  member: Member,
  { id, payload }: UpFrameOf<'media.upload.start'>,
): void {
  begin(edge, member, payload).then(
    (answer) => respond(edge, connection, encode({ type: 'media.upload.start', payload: answer }), id),
    (error: unknown) => {
      if (error instanceof RequestError) return refuse(edge, connection, id, error.code, error.message, error.retry_after_ms);
      edge.log.warn('edge.upload_failed', { what: 'link', error });
      refuse(edge, connection, id, 'internal', 'the file cannot be stored now');
    },
  );
}

async function begin(edge: EdgeContext, { feed, device_id, token_id }: Member, payload: UpFrameOf<'media.upload.start'>['payload']) {
  const { tenant_id } = feed;
  if (edge.config.media_secret === undefined) throw unsupported('link: links to files are off here');
  const { media_ref, kind, mime, size, filename, sha256 } = payload;
  const [media_id, object_id] = [`md_${edge.newConnectionId()}` as MediaId, `ob_${edge.newConnectionId()}` as ObjectId];
  const begun = await askAboutMedia(edge, tenant_id, 'media.begin', {
    ...{ device_id, media_id, object_id, media_ref, kind, mime, size, resume: true },
    ...(filename === undefined ? {} : { filename }),
    ...(sha256 === undefined ? {} : { sha256: sha256.toLowerCase() }),
  });
  const expires_at = edge.clock.now() + link_ms;
  const url = linkTo(edge, { op: 'put', tenant_id, media_id: begun.media_id, expires_at, by: { token_id, device_id } })!;
  if (begun.sha256 !== undefined) return { media_ref, offset: size, url, expires_at };
  const kept = begun.resumed ? await edge.media.resume(tenant_id, begun.object_id) : undefined;
  await kept?.writer.suspend();
  return { media_ref, offset: kept?.offset ?? 0, url, expires_at };
}
